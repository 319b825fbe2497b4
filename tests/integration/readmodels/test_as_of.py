"""As-of reads show a memory as it was: what they say of a moment equals what was written down at that moment."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text

from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.stages.forget import forget
from memoryos_pipeline.stages.restore import restore_knowledge
from tests.conftest import Stack
from tests.integration.stages.cold import START, Cold

THEN = "memory_v1.{what}_as_of(cast(:at as timestamptz))"
NOW = {"turns": "memory_v1.turns", "pages": "memory_v1.pages", "knowledge": "memory_v1.knowledge_history"}
KEPT_OUT = {"pages": ("heat", "cools_at", "pinned_at", "distill_cause", "extract_ordinal")}
"""What is not kept of a page: its heat, and its place in a line before it was distilled."""


def _dump(cold: Cold, what: str, at: datetime | None = None) -> list[dict[str, Any]]:
    source = THEN.format(what=what) if at else NOW[what]
    with cold.stack.app.transaction(cold.tenant_id) as connection:
        found = connection.execute(text(f"select * from {source} order by 1, 5, 6, 4"), {"at": at} if at else {})
        rows = [dict(row) for row in found.mappings()]
    return [{name: value for name, value in row.items() if name not in KEPT_OUT.get(what, ())} for row in rows]


def _live_through(cold: Cold) -> dict[datetime, dict[str, list[dict[str, Any]]]]:
    """Live a year of changes; return what was written down on the way."""
    written: dict[datetime, dict[str, list[dict[str, Any]]]] = {}

    def write_down(day: float) -> None:
        written[START + timedelta(days=day)] = {what: _dump(cold, what) for what in NOW}

    def forget_all() -> None:
        cold.owe(WorkKind.FORGET, scope)
        for lease in cold.claim(WorkKind.FORGET):
            forget(cold.parts, lease)

    cold.at(0)
    page = cold.page("residence=Seoul", "food=ramen", "*blood=A")
    cold.work()
    ((scope,),) = set(cold.rows("select scope_id from memoryos.page where page_id = :page", page=page))
    write_down(0)
    cold.at(10)
    cold.page("residence=Busan", "food=ramen", day=10)
    write_down(10)  # sealed, not yet known
    cold.at(11)
    cold.work()
    write_down(11)
    cold.at(200)
    forget_all()
    write_down(200)
    cold.at(210)
    ((forgotten, *_), *_) = cold.rows("select knowledge_id from memoryos.knowledge where status = 'forgotten'")
    assert restore_knowledge(cold.parts, cold.tenant_id, forgotten)
    write_down(210)
    return written


class TestReadAsOf:
    def test_as_of_a_moment_equals_the_dump_taken_then(self, stack: Stack) -> None:
        """Adding, replacing, reinforcing, forgetting and restoring later changes nothing about an earlier moment."""
        cold = Cold(stack)
        written = _live_through(cold)
        statuses = {row["status"] for dump in written.values() for row in dump["knowledge"]}

        assert statuses >= {"active", "superseded", "forgotten"}
        for at, dump in written.items():
            for what, rows in dump.items():
                assert _dump(cold, what, at) == rows, (at, what)

    def test_before_the_first_turn_there_is_nothing(self, stack: Stack) -> None:
        """A moment before everything shows an empty memory."""
        cold = Cold(stack)
        cold.at(0)
        cold.page("residence=Seoul")
        cold.work()

        assert [_dump(cold, what, START - timedelta(days=1)) for what in NOW] == [[], [], []]
