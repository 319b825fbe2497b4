"""When something happens is reckoned from when and where it was said, however late it is read."""

from datetime import datetime, timedelta

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.ids import scope_id
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.pipeline import STAGES
from tests.builders import rows, set_clock
from tests.conftest import Stack
from tests.lifecycle_builders import Walk

NEW_YEAR = datetime.fromisoformat("2025-01-01T00:20:00+09:00")
READ = datetime.fromisoformat("2025-08-20T12:00:00+00:00")
SAID = {
    "yesterday": ("Yesterday I started at the new job.", "2024-12-31"),
    "friday": ("My exam is on Friday.", "2025-01-03"),
    "ja": ("昨日引っ越した。", "2024-12-31"),
    "ko": ("내일 수술해요.", "2025-01-02"),
    "zh": ("我下周三出差。", "2025-01-08"),
}
KNOWN = """
    select k.content, k.event_at, k.event_precision, k.turn_at, k.recorded_at, p.first_turn_at, p.last_turn_at
      from memoryos.knowledge k join memoryos.knowledge_source s using (tenant_id, knowledge_id)
      join memoryos.page p using (tenant_id, page_id) where k.scope_id = :scope
"""
KINDS = (WorkKind.SUMMARIZE, WorkKind.EMBED, WorkKind.SEGMENT, WorkKind.DISTILL, WorkKind.MERGE)


@pytest.fixture
def walk(stack: Stack) -> Walk:
    """A memory that is read months after it was lived."""
    set_clock(stack, READ)
    embedder = HashingEmbedder()
    return Walk(stack, Policy(distill_when="sealed"), embedder, ExtractiveModel(embedder))


def _learn(walk: Walk) -> None:
    while any(walk.run(STAGES[kind], kind) for kind in KINDS):
        pass


def _known(walk: Walk, user: str) -> list[tuple[object, ...]]:
    return rows(walk.stack, KNOWN, scope=scope_id(walk.stack.tenant_id, user, "companion"))


class TestDate:
    def test_three_clocks_are_kept_apart(self, walk: Walk) -> None:
        """Said after midnight in Tokyo: the day of the event is Tokyo's, beside when it was said and when recorded."""
        for user, (said, _) in SAID.items():
            walk.seal(said, user_id=user, start=NEW_YEAR)
        _learn(walk)
        for user, (said, day) in SAID.items():
            [(content, event_at, precision, turn_at, recorded_at, first, last)] = _known(walk, user)
            assert content == f"[2025-01-01] Maya: {said}"
            assert event_at == datetime.fromisoformat(f"{day}T00:00:00+09:00"), user
            assert (precision, turn_at, recorded_at, first, last) == ("day", NEW_YEAR, READ, NEW_YEAR, NEW_YEAR)

    def test_the_day_is_told_as_it_was_told(self, walk: Walk) -> None:
        """Whatever zone it is read in: the day is the speaker's, now and as of then; a month is a month."""
        told = {"I moved to Kyoto yesterday.": "2024-12-31", "I met Ken in October 2023 in Oslo.": "2023-10"}
        for name, said in enumerate(told):
            walk.seal(said, start=NEW_YEAR, conversation=str(name))
        _learn(walk)
        views = ("knowledge", "knowledge_history", f"knowledge_as_of('{READ.isoformat()}')")
        for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
            for view in views:
                query = text(f"select content, event_on from memory_v1.{view}")
                with walk.stack.app.transaction(walk.stack.tenant_id) as connection:
                    connection.execute(text(f"set local time zone '{zone}'"))
                    found = {row.content.partition(": ")[2]: row.event_on for row in connection.execute(query)}
                assert found == told, (zone, view)

    def test_a_date_in_a_quotation_does_not_move_the_turn(self, walk: Walk) -> None:
        """What somebody else's letter calls yesterday changes nothing about when it was told."""
        walk.seal('My sister wrote "on 3 May 1999 I married" to me.', user_id="maya", start=NEW_YEAR)
        _learn(walk)

        assert {(row[3], row[5], row[6]) for row in _known(walk, "maya")} <= {(NEW_YEAR, NEW_YEAR, NEW_YEAR)}
        assert rows(walk.stack, "select occurred_at from memoryos.turn") == [(NEW_YEAR,)]

    def test_what_is_derived_spans_its_sources(self, walk: Walk) -> None:
        """Told on two days, it holds from the first and names both turns; its page spans the page's turns."""
        for name, days in (("one", 0), ("two", 30)):
            walk.seal("I live in Osaka.", "Nice.", start=NEW_YEAR + timedelta(days=days), conversation=name)
            _learn(walk)
        query = """
            select k.valid_from, array_agg(t.occurred_at order by t.occurred_at) from memoryos.knowledge k
              join memoryos.knowledge_source s using (tenant_id, knowledge_id)
              join memoryos.turn t on t.conversation_id = s.conversation_id and t.seq = s.seq
             where k.status = 'active' and k.slot is not null group by 1"""
        spans = "select first_turn_at, last_turn_at from memoryos.page order by 1"
        later = NEW_YEAR + timedelta(days=30)

        assert rows(walk.stack, query) == [(NEW_YEAR, [NEW_YEAR, later])]
        minute = timedelta(minutes=1)
        assert rows(walk.stack, spans) == [(NEW_YEAR, NEW_YEAR + minute), (later, later + minute)]
