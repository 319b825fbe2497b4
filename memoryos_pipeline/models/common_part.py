"""What any two texts of a language share in an embedder's space; nearness is judged without it."""

from collections.abc import Mapping, Sequence

from memoryos_pipeline.domain.everyday import EVERYDAY, everyday_sentences
from memoryos_pipeline.domain.segments import mean_vector
from memoryos_pipeline.models.protocols import Embedder

CommonParts = Mapping[str, Sequence[float]]
"""Per language; `und` for every other language."""
DATED = "[2026-01-01] A: "
"""How a statement begins that carries its date and its speaker; texts that all begin like this share that too."""
_COMMON_PARTS: dict[tuple[str, str, int, str], CommonParts] = {}


def common_parts(embedder: Embedder, *, beginning: str = "") -> CommonParts:
    """Return the common parts of texts that begin so, embedding everyday sentences once a process and space.

    Raises ModelError from the embedder.
    """
    key = (embedder.model, embedder.revision, embedder.dimensions, beginning)
    if key not in _COMMON_PARTS:
        _COMMON_PARTS[key] = {lang: _common_part(embedder, lang, beginning) for lang in (*EVERYDAY, "und")}
    return _COMMON_PARTS[key]


def _common_part(embedder: Embedder, lang: str, beginning: str) -> Sequence[float]:
    embedded = embedder.embed_passages([beginning + sentence for sentence in everyday_sentences(lang)])
    return mean_vector([each.vector.tolist() for each in embedded])
