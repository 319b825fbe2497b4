"""Hot turns are indexed ahead of their page, once, and found as well as what is sealed."""

from uuid import UUID

from sqlalchemy import text

from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.recall.search import Ask, search
from memoryos_pipeline.stages.advance import advance
from memoryos_pipeline.stages.embed import embed
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.sweeps import TAIL_TURNS, owe_due
from memoryos_pipeline.store.watermarks import read_watermarks
from tests.builders import claim_due, close, numbered, record, rows
from tests.conftest import Stack
from tests.doubles import HashtagModel
from tests.integration.stages.test_embed import OWNERS, WatchingEmbedder

VIOLATIONS = "select invariant, sentence from memoryos.violations where invariant in ('I5', 'I12')"
TURNS = "select turn_id from memoryos.turn where seq <= :through order by turn_id"


def _sweep(stack: Stack, parts: Parts) -> int:
    """Index the tails that are due; return how many."""
    owe_due(stack.ledger_database, name="tail")
    leases = claim_due(stack, WorkKind.EMBED)
    for lease in leases:
        embed(parts, lease)
    return len(leases)


def _embedded(stack: Stack, conversation: UUID) -> int:
    with stack.app.transaction(stack.tenant_id) as connection:
        marks = read_watermarks(connection, stack.tenant_id, conversation)
    assert marks is not None
    return marks.through["embedded"]


class TestEmbedTail:
    def test_hot_turns_are_indexed_once_and_their_page_finds_them_done(self, stack: Stack) -> None:
        """Six hot turns get index rows and the watermark says so; sealing them costs no second vector."""
        embedder = WatchingEmbedder()
        parts = Parts(stack.app, embedder, HashtagModel())
        conversation = record(stack, *numbered(6))

        assert _sweep(stack, parts) == 1
        assert rows(stack, OWNERS) == [("turn", turn) for (turn,) in rows(stack, TURNS, through=6)]
        assert _embedded(stack, conversation) == 6
        assert rows(stack, VIOLATIONS) == []
        assert _sweep(stack, parts) == 0

        close(stack, conversation)
        for lease in claim_due(stack, WorkKind.ADVANCE):
            advance(parts, lease)
        for lease in claim_due(stack, WorkKind.EMBED):
            embed(parts, lease)
        assert sorted(embedder.texts) == sorted(numbered(6))
        assert rows(stack, "select indexed_through from memoryos.conversation") == [(6,)]
        assert rows(stack, VIOLATIONS) == []

    def test_a_few_new_turns_wait_for_more_or_for_silence(self, stack: Stack) -> None:
        """Fewer than four turns just said are not worth a message; they are found by their words meanwhile."""
        parts = Parts(stack.app, WatchingEmbedder(), HashtagModel())
        record(stack, *numbered(TAIL_TURNS - 1))
        assert _sweep(stack, parts) == 0

        found = search(parts, stack.tenant_id, Ask("maya", "companion", numbered(1)[0])).results
        assert len(found) == TAIL_TURNS - 1
        assert "dense" not in found[0].features

        rows(
            stack,
            "update memoryos.conversation set last_activity_at = last_activity_at - interval '1 minute' returning 1",
        )
        assert _sweep(stack, parts) == 1
        found = search(parts, stack.tenant_id, Ask("maya", "companion", numbered(1)[0])).results
        assert all("dense" in result.features for result in found)

    def test_turns_sealed_meanwhile_are_left_to_their_page(self, stack: Stack) -> None:
        """Whoever seals while a tail is embedded takes turns along, and nothing is claimed to be done before it is."""
        conversation = record(stack, *numbered(6))

        def seal() -> None:
            with stack.app.transaction(stack.tenant_id) as connection:
                connection.execute(text("update memoryos.conversation set sealed_through = 5"))

        assert _sweep(stack, Parts(stack.app, WatchingEmbedder(seal), HashtagModel())) == 1
        assert rows(stack, OWNERS) == [("turn", rows(stack, "select turn_id from memoryos.turn where seq = 6")[0][0])]
        assert rows(
            stack, "select ahead_through from memoryos.conversation where conversation_id = :c", c=conversation
        ) == [(0,)]
