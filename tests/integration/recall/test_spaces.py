"""Another embedder is another space: vectors of two are never compared; the new one is filled while search goes on."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from memoryos_pipeline.cli.main import app
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.models.protocols import Embedded, Vector
from memoryos_pipeline.recall.search import DEGRADED_NO_VECTORS, search
from memoryos_pipeline.stages.embed import embed
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.reembedding import owe_reembedding
from tests.builders import claim_due, rows
from tests.builders_recall import ask, recall_parts
from tests.conftest import Stack
from tests.doubles import HashtagModel
from tests.lifecycle_builders import Walk

SAID = ("The heron stands in the reeds.", "Curtains arrived on Monday.", "나는 한강에서 자전거를 탔다.")
SPACES = """
    select v.model, v.dimensions, public.vector_dims(cast(e.vec as public.halfvec)), count(*)
      from memoryos.embedding e join memoryos.vector_space v using (space_id)
     where e.owner_kind = 'turn' group by 1, 2, 3 order by 1
"""


class Reshaped(HashingEmbedder):
    """Hashes into another number of dimensions, or into the same ones with another meaning."""

    def __init__(self, model: str, dimensions: int) -> None:
        self.model, self.dimensions = model, dimensions

    def embed_passages(self, texts: Sequence[str]) -> list[Embedded]:
        return [Embedded(self._shape(one.vector), one.tokens, one.truncated) for one in super().embed_passages(texts)]

    def embed_query(self, text: str) -> Vector:
        return self._shape(super()._embed(text).vector)

    def _shape(self, vector: Vector) -> Vector:
        tiled = np.resize(-vector, self.dimensions).astype(np.float32)
        return tiled / np.linalg.norm(tiled)


OLD = HashingEmbedder()
NEWER = [Reshaped("narrow", 192), Reshaped("twin", OLD.dimensions), Reshaped("wide", 3072)]


def _embed_all(stack: Stack, embedder: HashingEmbedder) -> int:
    leases = claim_due(stack, WorkKind.EMBED)
    for lease in leases:
        embed(Parts(stack.app, embedder, HashtagModel()), lease)
    return len(leases)


class TestChange:
    @pytest.mark.parametrize("newer", NEWER, ids=lambda each: each.model)
    def test_nothing_is_compared_across_and_nothing_stands_still(self, stack: Stack, newer: Reshaped) -> None:
        """Words find it at once; embedded anew it is found by both, each in its own space, and once is enough."""
        Walk(stack).seal(*SAID)
        _embed_all(stack, OLD)
        before = search(recall_parts(stack, embedder=newer), stack.tenant_id, ask("heron in the reeds"))
        owed = owe_reembedding(stack.owner, stack.tenant_id, newer)
        again = owe_reembedding(stack.owner, stack.tenant_id, newer)
        _embed_all(stack, newer)
        finished = owe_reembedding(stack.owner, stack.tenant_id, newer)

        assert (before.degraded, before.results[0].content) == ((DEGRADED_NO_VECTORS,), SAID[0])
        assert (owed, again, finished) == (1, 0, 0)
        counts = [("hashing", OLD.dimensions, OLD.dimensions, 3), (newer.model, newer.dimensions, newer.dimensions, 3)]
        assert rows(stack, SPACES) == sorted(counts)
        for embedder in (OLD, newer):
            found = search(recall_parts(stack, embedder=embedder), stack.tenant_id, ask(SAID[0]))
            assert (found.degraded, found.results[0].content) == ((), SAID[0])
            assert found.results[0].features["dense"] == pytest.approx(1.0, abs=0.01)


class TestCommand:
    def test_it_says_what_is_owed(self, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
        """By tenant; asked again nothing is left to owe. The doctor says what to do before it, and nothing after."""
        for name, role in (("DATABASE", "app"), ("LEDGER", "ledger"), ("OWNER", "owner")):
            monkeypatch.setenv(f"MEMORYOS_{name}_URL", stack.url(role))
        monkeypatch.setenv("MEMORYOS_EMBEDDER", "hashing")
        Walk(stack).seal(*SAID)
        _embed_all(stack, NEWER[0])
        before = _vectors()
        first, second = (CliRunner().invoke(app, ["reembed", "--json"]) for _ in range(2))
        shown = CliRunner().invoke(app, ["reembed"])

        assert json.loads(first.stdout) == {"model": "hashing", "owed": 1, "tenants": {"test": 1}}
        assert json.loads(second.stdout)["owed"] == 0
        assert "has a vector of hashing" in shown.stdout
        _embed_all(stack, OLD)
        assert ("memoryos reembed" in before["sentence"], before["is_good"], _vectors()["is_good"]) == (
            True,
            False,
            True,
        )


def _vectors() -> dict[str, Any]:
    """Return what the doctor says about vectors."""
    told = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout.splitlines()[-1])
    return next(check for check in told["checks"] if check["name"] == "vectors")
