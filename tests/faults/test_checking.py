"""The checker itself: it must see what was lost, doubled or never sent before anybody may trust its silence."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.domain.turn_body import parse_turn
from memoryos_pipeline.faults.checking import check
from memoryos_pipeline.faults.cluster import Cluster
from memoryos_pipeline.faults.journal import ClientJournal, read_journal
from memoryos_pipeline.faults.load import conversation
from memoryos_pipeline.stages.record_turns import record_turns

DOUBLE_AN_EVENT = text("""
    insert into memoryos.event (tenant_id, scope_id, kind, subject_id)
    select tenant_id, scope_id, 'page_sealed', conversation_id
      from memoryos.conversation, generate_series(1, 2) where tenant_id = :tenant_id limit 2
""")


def _record(cluster: Cluster, turns: list[dict[str, Any]]) -> list[int]:
    recorded = record_turns(
        cluster.app, cluster.tenant_id, [parse_turn(turn) for turn in turns], policy=DEFAULT, max_attempts=5
    )
    return [receipt.seq for receipt in recorded]


@pytest.fixture
def own_journal(tmp_path: Path) -> Iterator[ClientJournal]:
    """A journal of one test's own, beside the module's database."""
    journal = ClientJournal(tmp_path / "journal.jsonl")
    yield journal
    journal.close()


@pytest.fixture
def kept(cluster: Cluster, own_journal: ClientJournal, request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """Four turns that are recorded, and so journaled; in a conversation of the test's own."""
    turns = conversation(4, user=request.node.name)
    own_journal.invoke(turns)
    own_journal.ok(turns, _record(cluster, turns))
    return turns


def _of(verdict_names: tuple[Any, ...], user: str) -> list[Any]:
    return [name for name in verdict_names if user in name]


class TestCheck:
    def test_an_acknowledged_turn_that_is_not_there_is_lost(
        self, cluster: Cluster, own_journal: ClientJournal, kept: list[dict[str, Any]]
    ) -> None:
        """Acknowledged and gone, or there under another number: both are lost; what was kept is not."""
        gone = conversation(1, user="gone")
        own_journal.invoke(gone)
        own_journal.ok(gone, [1])
        moved = kept[:1]
        own_journal.ok(moved, [3])

        lost = check(cluster, own_journal.path).lost
        assert _of(lost, "gone")
        assert _of(lost, kept[0]["user_id"])

    def test_a_refused_turn_that_is_there_is_unexpected(self, cluster: Cluster, own_journal: ClientJournal) -> None:
        """Whoever was told no must not find it recorded; nor may there be what nobody sent."""
        refused, unsent = conversation(1, user="refused"), conversation(1, user="unsent")
        own_journal.invoke(refused)
        own_journal.fail(refused)
        _record(cluster, refused)
        _record(cluster, unsent)

        unexpected = check(cluster, own_journal.path).unexpected
        assert _of(unexpected, "refused")
        assert _of(unexpected, "unsent")

    def test_what_was_unknown_and_is_there_is_recovered(self, cluster: Cluster, own_journal: ClientJournal) -> None:
        """No answer, and recorded: recovered; no answer, and not recorded: nothing is wrong either."""
        found, never = conversation(1, user="found"), conversation(1, user="never")
        for turns in (found, never):
            own_journal.invoke(turns)
            own_journal.unknown(turns)
        _record(cluster, found)

        verdict = check(cluster, own_journal.path)
        assert verdict.recovered == 1
        assert not _of(verdict.lost, "never")

    def test_an_effect_that_happened_twice_is_seen(
        self, cluster: Cluster, own_journal: ClientJournal, kept: list[dict[str, Any]]
    ) -> None:
        """A page is sealed once: the same event again is a doubled effect."""
        with cluster.app.transaction(cluster.tenant_id) as connection:
            connection.execute(DOUBLE_AN_EVENT, {"tenant_id": cluster.tenant_id})

        assert [kind for kind, _ in check(cluster, own_journal.path).doubled_effects] == ["page_sealed"]


class TestReadJournal:
    def test_every_outcome_is_on_disk_when_the_call_returns(self, own_journal: ClientJournal) -> None:
        """Sent, unanswered, sent again and acknowledged: another reader sees it while the journal is open."""
        turns = conversation(1, user="written")
        own_journal.invoke(turns)
        own_journal.unknown(turns)
        own_journal.invoke(turns)
        own_journal.ok(turns, [7])

        (known,) = read_journal(own_journal.path).values()
        assert (known.seqs, known.was_unknown, known.outcome) == ({7}, True, "ok")
