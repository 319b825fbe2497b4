"""Long conversations to post, in four languages, and what must have become of them when nothing is owed any more."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from typing import Any

from sqlalchemy import text

from memoryos_pipeline.readmodels.invariants import find_violations
from memoryos_pipeline.sample import sample_turns
from tests.conftest import Stack

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
LANGUAGES = ("en", "ja", "ko", "zh")

# A turn that left the hot buffer lies on exactly one page, one that did not lies on none.
MISPLACED = text("""
    select c.external_id, t.seq, count(p.page_id) as pages
      from memoryos.turn t
      join memoryos.conversation c on c.tenant_id = t.tenant_id and c.conversation_id = t.conversation_id
      left join memoryos.page p on p.tenant_id = t.tenant_id and p.conversation_id = t.conversation_id
                               and t.seq between p.first_seq and p.last_seq
     where t.tenant_id = :tenant_id
     group by c.external_id, t.seq, c.sealed_through
    having count(p.page_id) <> case when t.seq <= c.sealed_through then 1 else 0 end
""")
RECORDED = text("select client_turn_id from memoryos.turn where tenant_id = :tenant_id")
HOT = text("select max(next_seq - 1 - sealed_through) from memoryos.conversation where tenant_id = :tenant_id")
SILENT = text("""
    select count(*) from memoryos.page where tenant_id = :tenant_id and (summary is null or indexed_at is null)
""")


def long_conversation(turns: int, *, lang: str = "en", name: str = "long") -> list[dict[str, Any]]:
    """Return turn bodies of one conversation, a minute apart: what the sample's people say, over and over."""
    told = [turn for turn in sample_turns() if turn["metadata"]["lang"] == lang]
    return [_body(told[n % len(told)], n, f"{name}-{lang}") for n in islice(count(), turns)]


def four_conversations(turns: int) -> Iterator[list[dict[str, Any]]]:
    """Yield one conversation a language, so many turns together."""
    for lang in LANGUAGES:
        yield long_conversation(turns // len(LANGUAGES), lang=lang)


def _body(turn: dict[str, Any], n: int, conversation: str) -> dict[str, Any]:
    names = {"conversation_id": conversation, "client_turn_id": f"{conversation}-{n}"}
    said = {"content": f"{turn['content']} ({n})", "occurred_at": (START + timedelta(minutes=n)).isoformat()}
    return {**turn, **names, **said}


def assert_settled(stack: Stack, sent: list[str], *, hot_turns: int) -> None:
    """Hold a drained tenant to what was sent: all of it once, on one page or hot, and no invariant broken."""
    values = {"tenant_id": stack.tenant_id}
    with stack.app.transaction(stack.tenant_id) as connection:
        assert sorted(connection.execute(RECORDED, values).scalars()) == sorted(sent)
        assert connection.execute(MISPLACED, values).all() == []
        assert connection.execute(HOT, values).scalar_one() <= hot_turns
        assert connection.execute(SILENT, values).scalar_one() == 0
        assert find_violations(connection, stack.tenant_id, at_rest=True) == []
