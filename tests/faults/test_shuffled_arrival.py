"""Order of arrival is not order of truth: what was said last holds, whatever came last, in every language."""

import random
from datetime import timedelta
from typing import Any

import pytest

from memoryos_pipeline.domain.ids import scope_id
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.domain.turn_body import parse_turn
from memoryos_pipeline.faults.load import START
from memoryos_pipeline.readmodels.invariants import find_violations
from memoryos_pipeline.stages.record_turns import close_conversation, record_turns
from memoryos_pipeline.store.sweeps import owe_due
from tests.builders import rows, set_clock
from tests.conftest import Stack
from tests.faults.crew import fresh_seed, hired

SAID = {
    "en": ("I live in {} now.", ("Lisbon", "Oslo", "Turin", "Quito", "Cairo", "Perth", "Lima", "Boston")),
    "ja": ("今は{}に住んでいます。", ("大阪", "神戸", "札幌", "福岡", "京都", "仙台", "金沢", "広島")),
    "ko": ("지금은 {}에 살고 있어요.", ("부산", "대구", "서울", "인천", "광주", "대전", "수원", "울산")),
    "zh": ("我现在住在{}。", ("成都", "西安", "武汉", "南京", "杭州", "重庆", "天津", "北京")),
}
FILLERS = 4
BATCH = 2
DRAIN_SECONDS = 90.0
LIVE = """
    select s.user_id, k.slot_value from memoryos.knowledge k join memoryos.scope s using (tenant_id, scope_id)
     where k.status = 'active' and k.slot like '%residence%' order by 1
"""
SEQS = """
    select conversation_id, count(*), min(seq), max(seq), count(distinct seq) from memoryos.turn
     group by conversation_id
"""
UNCOVERED = """
    select t.client_turn_id, count(p.page_id) from memoryos.turn t
      left join memoryos.page p on p.conversation_id = t.conversation_id and t.seq between p.first_seq and p.last_seq
     group by t.tenant_id, t.turn_id, t.client_turn_id having count(p.page_id) <> 1
"""


def _life(lang: str) -> list[dict[str, Any]]:
    """Return a year of one speaker: a month apart somebody lives elsewhere, and talks of nothing in between."""
    frame, places = SAID[lang]
    turns = []
    for month, place in enumerate(places):
        for n in range(FILLERS + 1):
            at = START + timedelta(days=30 * month, minutes=n)
            turns.append(
                {
                    "user_id": lang,
                    "agent_id": "companion",
                    "conversation_id": "year",
                    "client_turn_id": f"{month}-{n}",
                    "role": "user",
                    "speaker": "Mika",
                    "content": frame.format(place) if n == 0 else f"({month}.{n})",
                    "occurred_at": at.isoformat(),
                }
            )
    return turns


@pytest.mark.slow
class TestShuffledArrival:
    def test_what_was_said_last_holds(self, stack: Stack) -> None:
        """A year of four people arrives in an order of chance: all is numbered and paged, the last home is home."""
        chance = random.Random(fresh_seed())
        turns = [turn for lang in SAID for turn in _life(lang)]
        chance.shuffle(turns)
        set_clock(stack, START)
        with hired(stack, seed=chance.randrange(2**32)) as crew:

            def tell() -> None:
                for start in range(0, len(turns), BATCH):
                    told = [parse_turn(turn) for turn in turns[start : start + BATCH]]
                    record_turns(stack.app, stack.tenant_id, told, policy=DEFAULT, max_attempts=5)
                for lang in SAID:
                    scope = scope_id(stack.tenant_id, lang, "companion")
                    close_conversation(
                        stack.app, stack.tenant_id, scope_id=scope, conversation_id="year", max_attempts=5
                    )

            crew.drain(seconds=DRAIN_SECONDS, meanwhile=tell)
            set_clock(stack, START + timedelta(days=30))
            owe_due(crew.database)
            crew.drain(seconds=DRAIN_SECONDS)

        each = len(turns) // len(SAID)
        assert [tuple(row[1:]) for row in rows(stack, SEQS)] == [(each, 1, each, each)] * len(SAID)
        assert rows(stack, UNCOVERED) == []
        assert rows(stack, LIVE) == [(lang, SAID[lang][1][-1].casefold()) for lang in sorted(SAID)]
        with stack.app.transaction(stack.tenant_id) as connection:
            assert find_violations(connection, stack.tenant_id, at_rest=True) == []
