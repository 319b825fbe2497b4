"""The demonstration's figures can be wrong: each kind of seeded fault makes one of them non-zero."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from memoryos_pipeline.demo.journal import JournaledClient, read_journal
from memoryos_pipeline.demo.outcome import Outcome, read_outcome
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.domain.turn_body import parse_turn
from memoryos_pipeline.sample import sample_turns
from memoryos_pipeline.stages.record_turns import record_turns
from tests.conftest import Stack

SAID = sample_turns()[:3]
LOSE_ONE = "delete from memoryos.turn where client_turn_id = :name"
CHANGE_ONE = "update memoryos.turn set body_sha256 = '\\x00' where client_turn_id = :name"
COPY_ONE = """
    insert into memoryos.turn
    select tenant_id, conversation_id, 4, gen_random_uuid(), scope_id, 'copy', body_sha256, role, speaker, content,
           parts, metadata, kind, lang, occurred_at, utc_offset_minutes, recorded_at
      from memoryos.turn where client_turn_id = :name
"""
LOSE_A_NUMBER = "update memoryos.conversation set next_seq = next_seq + 1 where :name <> ''"


class StraightToSql:
    """Records turns as the API does, without the wire."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def add_turns(self, turns: list[dict[str, Any]]) -> Any:
        new = [parse_turn(turn) for turn in turns]
        recorded = record_turns(self._stack.app, self._stack.tenant_id, new, policy=DEFAULT, max_attempts=5)
        return [{"seq": each.seq} for each in recorded]


@pytest.fixture
def journal(stack: Stack, tmp_path: Path) -> Path:
    """Three turns, published and written down."""
    path = tmp_path / "journal.jsonl"
    JournaledClient(StraightToSql(stack), path).add_turns(SAID)
    return path


def _outcome(stack: Stack, journal: Path) -> Outcome:
    return read_outcome(stack.app, stack.tenant_id, read_journal(journal))


class TestOutcome:
    def test_nothing_is_wrong_when_nothing_is(self, stack: Stack, journal: Path) -> None:
        """Every figure is zero, and every turn is there."""
        outcome = _outcome(stack, journal)

        assert (outcome.lost, outcome.doubled, outcome.violations, outcome.is_sound) == (0, 0, [], True)
        assert [turn["client_turn_id"] for turn in outcome.tiers["turns"]] == [turn["client_turn_id"] for turn in SAID]

    @pytest.mark.parametrize(
        ("fault", "figure"),
        [(LOSE_ONE, "lost"), (CHANGE_ONE, "lost"), (COPY_ONE, "doubled"), (LOSE_A_NUMBER, "violations")],
    )
    def test_a_fault_is_counted(self, stack: Stack, journal: Path, fault: str, figure: str) -> None:
        """A turn that is gone, changed or there twice, and a gap in the order, each show."""
        with stack.owner.transaction(stack.tenant_id) as connection:
            assert connection.execute(text(fault), {"name": SAID[-1]["client_turn_id"]}).rowcount == 1
        outcome = _outcome(stack, journal)

        assert getattr(outcome, figure)
        assert not outcome.is_sound

    def test_an_unknown_outcome_is_not_a_loss(self, stack: Stack, journal: Path) -> None:
        """A turn that was sent and never acknowledged may be there or not."""

        class Broken:
            def add_turns(self, turns: list[dict[str, Any]]) -> Any:
                raise ConnectionError(len(turns))

        with pytest.raises(ConnectionError):
            JournaledClient(Broken(), journal).add_turns(sample_turns()[3:4])

        assert len(read_journal(journal)) == 4
        assert _outcome(stack, journal).is_sound
