"""What `memoryos bench recall` measures is a memory like any other: made-up turns that search really ranks."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from memoryos_pipeline.cli.bench_recall import Bench, Filler, StandIn, Times, _percentile
from memoryos_pipeline.cli.main import app
from memoryos_pipeline.embedded.first_run import TENANT_ID
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.recall.search import Ask, search
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.synthetic import AGENT, TERMS_PER_TURN, fill_user, settle
from memoryos_pipeline.store.tenants import create_tenant
from tests.conftest import Stack

TURNS = 60


@pytest.fixture
def parts(stack: Stack) -> Parts:
    """Two users with made-up memories."""
    embedder = StandIn.of(HashingEmbedder())
    with stack.app.transaction(stack.tenant_id) as connection:
        for user in ("first", "second"):
            fill_user(connection, stack.tenant_id, user, turns=TURNS, embedder=embedder)
    settle(stack.owner)
    return Parts(database=stack.app, embedder=embedder, language_model=None)  # type: ignore[arg-type]


class TestFill:
    def test_a_made_up_memory_is_searched_by_every_arm(self, stack: Stack, parts: Parts) -> None:
        """Every turn of the user is a candidate with a vector, its words count, and nothing is degraded."""
        everything = search(parts, stack.tenant_id, Ask("first", AGENT, "w1 w2 w3", limit=100))
        said = everything.results[0].content
        found = search(parts, stack.tenant_id, Ask("first", AGENT, said, limit=100)).results
        best = max(found, key=lambda result: result.features["bm25"])

        assert len(everything.results) == TURNS
        assert everything.degraded == ()
        assert all("dense" in result.features for result in everything.results)
        # The made-up vectors are chance, so only the words can tell which turn was quoted.
        assert (best.content, len(said.split())) == (said, TERMS_PER_TURN)

    def test_no_two_turns_or_users_say_the_same(self, stack: Stack, parts: Parts) -> None:
        """Words are drawn for each turn anew; one text for all would make every measurement a lie."""
        texts = [
            result.content
            for user in ("first", "second")
            for result in search(parts, stack.tenant_id, Ask(user, AGENT, "w1", limit=100)).results
        ]

        assert len(set(texts)) == 2 * TURNS

    def test_vectors_differ(self, stack: Stack, parts: Parts) -> None:
        """Cosines to one question are spread, so the dense arm has something to order."""
        found = search(parts, stack.tenant_id, Ask("first", AGENT, "w1", limit=100)).results

        assert len({round(result.features["dense"], 4) for result in found}) > TURNS / 2


class TestStandIn:
    def test_it_is_the_same_space_without_the_cost(self) -> None:
        """Name and dimensions are the embedder's; a question has one vector of length 1, another question another."""
        embedder = HashingEmbedder()
        stand_in = StandIn.of(embedder)

        assert (stand_in.model, stand_in.dimensions) == (embedder.model, embedder.dimensions)
        assert (stand_in.embed_query("a") == stand_in.embed_query("a")).all()
        assert (stand_in.embed_query("a") != stand_in.embed_query("b")).any()
        assert float(stand_in.embed_query("a") @ stand_in.embed_query("a")) == pytest.approx(1.0)
        assert replace(stand_in) == stand_in


class TestFiller:
    def test_it_fills_up_to_a_size_with_those_who_are_asked_among_others(self, stack: Stack) -> None:
        """Of 3,000 memories 1,000 are the small user's, the rest are other people's; progress counts all of them."""
        create_tenant(stack.owner, TENANT_ID, "bench")
        told: list[int] = []
        filler = Filler(stack.app, stack.owner, HashingEmbedder(), told.append)
        filler.fill_to(3_000, last=True)

        assert (filler.users, sum(told)) == ({"user-1000", "other-0", "other-1"}, 3_000)

    def test_a_measurement_splits_its_time(self, parts: Parts) -> None:
        """Every question is counted once, for eight clients as for one; the parts sum to the whole."""
        bench = Bench(replace(parts, database=parts.database), questions=20)
        for user in ("first", "second"):
            times = bench.search(user, clients=2)
            assert len(times.total) == 20
            assert all(sql > 0 for sql in times.sql)
        figures = Times([4.0] * 20, [1.0] * 20, [2.0] * 20).figures("x")
        assert figures["p95_ms_x"] == 4.0
        assert (figures["embedding_ms_x"], figures["sql_ms_x"], figures["scoring_ms_x"]) == (1.0, 2.0, 1.0)


class TestCommand:
    def test_percentiles_are_of_the_sorted_times(self) -> None:
        """Of a hundred times the 95th percentile is the 96th; of few, the last."""
        assert _percentile([float(time) for time in range(100)], 95) == 95.0
        assert _percentile([1.0, 2.0], 99) == 2.0

    def test_it_is_found_under_bench(self) -> None:
        """`memoryos bench recall` is a command and refuses a database too small to show growth."""
        refused = CliRunner().invoke(app, ["bench", "recall", "--memories", "100"])

        assert refused.exit_code == 2
