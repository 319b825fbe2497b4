"""The copy of a hot tail on a real Valkey: as quick to lose as to rebuild, and never shown where Postgres differs."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from uuid import UUID

import pytest
from redis import Redis
from sqlalchemy import text

from memoryos_pipeline.domain.ids import conversation_id, mint_id, scope_id
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.domain.turns import NewTurn, TurnKind
from memoryos_pipeline.embedded.process import free_port
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.recall.context import build_context
from memoryos_pipeline.recall.hot_tail import read_tail
from memoryos_pipeline.stages.erase_user import erase_user
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.stages.record_turns import record_turns
from memoryos_pipeline.store.found import FoundTurn, read_hot_turns
from memoryos_pipeline.store.hot import TailTurn
from memoryos_pipeline.store.hot_copy import MOST_COPIED, HotCopies
from memoryos_pipeline.store.search import ScopeKey
from memoryos_pipeline.store.tenants import create_tenant
from tests.builders_recall import ask, recall_parts
from tests.conftest import Stack

PREFIX = "mem:test:"
SAID = ["Where are we?", "京都にいます。", "교토에 있어요.", "我们在京都。", '"Quoted"\nand broken']
SEOUL = timezone(timedelta(hours=9))
START = datetime(2026, 3, 1, 9, 0, 0, 123456, tzinfo=SEOUL)
SEAL = text("""
    update memoryos.conversation set sealed_through = :through
     where tenant_id = :tenant_id and conversation_id = :conversation_id
""")


@pytest.fixture
def broker(valkey: EmbeddedValkey) -> Iterator[Redis]:
    client: Redis = Redis.from_url(valkey.url, decode_responses=True)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def copies(valkey: EmbeddedValkey, broker: Redis) -> Iterator[HotCopies]:
    made = HotCopies(valkey.url, key_prefix=PREFIX, seconds=60)
    yield made
    made.close()


def _parts(stack: Stack, copies: HotCopies | None) -> Parts:
    return replace(recall_parts(stack), hot_copies=copies)


def _say(
    parts: Parts, tenant_id: UUID, *contents: str, first: int = 1, user_id: str = "maya", kind: TurnKind = "normal"
) -> None:
    turns = [
        NewTurn(user_id, "companion", "c1", f"t{first + n}", "user", "Maya", content,
                START + timedelta(minutes=first + n), kind=kind)
        for n, content in enumerate(contents)
    ]  # fmt: skip
    record_turns(parts.database, tenant_id, turns, policy=DEFAULT, max_attempts=5, hot_copies=parts.hot_copies)


def _key(tenant_id: UUID, user_id: str = "maya") -> ScopeKey:
    return ScopeKey(tenant_id, scope_id(tenant_id, user_id, "companion"))


def _truth(stack: Stack, key: ScopeKey) -> list[FoundTurn]:
    with stack.app.transaction(key.tenant_id) as connection:
        return read_hot_turns(connection, key, external_id="c1")


def _seen(parts: Parts, key: ScopeKey) -> list[str]:
    return [turn.content for turn in reversed(read_tail(parts, key, "c1"))]


def _turn(seq: int, content: str, *, position: int = 1) -> TailTurn:
    return TailTurn(seq, mint_id(), position, f"t{seq}", "user", "Maya", content, "en", START, "normal")


class TestRead:
    def test_a_copy_is_what_postgres_holds(self, stack: Stack, copies: HotCopies) -> None:
        """Written by those who record, request after request: every field, every language, offsets, hidden kinds."""
        parts, key = _parts(stack, copies), _key(stack.tenant_id)
        _say(parts, stack.tenant_id, *SAID)
        _say(parts, stack.tenant_id, "what a recall had said", first=6, kind="recalled")
        _say(parts, stack.tenant_id, "and on", first=7)
        found = read_tail(parts, key, "c1")

        assert copies.counts == {"used": 1}
        assert found == _truth(stack, key)
        assert [turn.occurred_at.utcoffset() for turn in found] == [timedelta(hours=9)] * 6
        assert [turn.content for turn in reversed(found)] == [*SAID, "and on"]

    def test_an_emptied_server_is_filled_again(self, stack: Stack, copies: HotCopies, broker: Redis) -> None:
        """FLUSHALL costs one read from Postgres, which puts the copy back for a bounded time."""
        parts, key = _parts(stack, copies), _key(stack.tenant_id)
        _say(parts, stack.tenant_id, *SAID)
        broker.flushall()
        assert _seen(parts, key) == SAID
        assert _seen(parts, key) == SAID
        (name,) = broker.scan_iter(f"{PREFIX}hot1:*")

        assert copies.counts == {"stale": 1, "used": 1}
        assert 0 < broker.pttl(name) <= 60_000

    def test_an_older_copy_is_read_past(self, stack: Stack, copies: HotCopies) -> None:
        """A turn recorded by a process that keeps no copies is seen at once, and the copy is mended."""
        parts, key = _parts(stack, copies), _key(stack.tenant_id)
        _say(parts, stack.tenant_id, "one", "two")
        _say(_parts(stack, None), stack.tenant_id, "three", first=3)
        assert _seen(parts, key) == ["one", "two", "three"]
        _say(parts, stack.tenant_id, "four", first=4)

        assert _seen(parts, key) == ["one", "two", "three", "four"]
        assert copies.counts == {"stale": 1, "used": 1}

    def test_what_left_hot_leaves_the_copy(self, stack: Stack, copies: HotCopies) -> None:
        """Sealed turns are not shown from a copy that still has them, and go with the next turn; all of them may go."""
        parts, key = _parts(stack, copies), _key(stack.tenant_id)
        values = {"tenant_id": stack.tenant_id, "conversation_id": conversation_id(key.scope_id, "c1")}
        _say(parts, stack.tenant_id, "one", "two", "three")
        for through, left in ((2, ["three"]), (3, [])):
            with stack.app.transaction(stack.tenant_id) as connection:
                connection.execute(SEAL, {**values, "through": through})
            assert _seen(parts, key) == left
        _say(parts, stack.tenant_id, "four", first=4)

        assert _seen(parts, key) == ["four"]
        assert [turn.content for turn in copies.read(stack.tenant_id, values["conversation_id"])] == ["four"]
        assert copies.counts == {"used": 3}

    def test_what_was_never_committed_is_not_shown(self, stack: Stack, copies: HotCopies) -> None:
        """A copy ahead of Postgres, with another newest turn, or with a gap is no copy of it."""
        parts, key = _parts(stack, copies), _key(stack.tenant_id)
        conversation = conversation_id(key.scope_id, "c1")
        _say(parts, stack.tenant_id, "one", "two")
        copies.append(stack.tenant_id, conversation, [_turn(3, "rolled back")], sealed_through=0)
        assert _seen(parts, key) == ["one", "two"]
        copies.replace(
            stack.tenant_id, conversation, [_turn(1, "of a lost time"), _turn(2, "as well")], sealed_through=0
        )
        assert _seen(parts, key) == ["one", "two"]
        copies.append(stack.tenant_id, conversation, [_turn(9, "after a gap")], sealed_through=0)

        assert copies.read(stack.tenant_id, conversation) == []
        assert _seen(parts, key) == ["one", "two"]

    def test_a_long_backlog_is_not_copied(self, stack: Stack, copies: HotCopies) -> None:
        """Beyond 200 turns Postgres is read: memory of the broker is not spent on what pages will take."""
        parts, key = _parts(stack, copies), _key(stack.tenant_id)
        said = [f"line {n}" for n in range(MOST_COPIED + 1)]
        _say(parts, stack.tenant_id, *said)

        assert _seen(parts, key) == said
        assert copies.read(stack.tenant_id, conversation_id(key.scope_id, "c1")) == []

    def test_a_full_broker_is_left_to_its_messages(self, stack: Stack, copies: HotCopies, broker: Redis) -> None:
        """When half of its memory is used nothing is copied: copies must not keep work from being rung for."""
        parts, key = _parts(stack, copies), _key(stack.tenant_id)
        used, limit = broker.info("memory")["used_memory"], broker.config_get("maxmemory")["maxmemory"]
        broker.config_set("maxmemory", int(used * 1.9))
        try:
            _say(parts, stack.tenant_id, "one")
        finally:
            broker.config_set("maxmemory", limit or 0)

        assert list(broker.scan_iter(f"{PREFIX}*")) == []
        assert _seen(parts, key) == ["one"]

    def test_tenants_have_copies_of_their_own(self, stack: Stack, copies: HotCopies) -> None:
        """The same user, agent and conversation in two tenants: neither sees a word of the other."""
        other = mint_id()
        create_tenant(stack.owner, other, "other")
        parts = _parts(stack, copies)
        _say(parts, stack.tenant_id, "ours")
        _say(parts, other, "theirs")

        assert _seen(parts, _key(stack.tenant_id)) == ["ours"]
        assert _seen(parts, _key(other)) == ["theirs"]
        assert copies.read(other, conversation_id(_key(stack.tenant_id).scope_id, "c1")) == []
        assert copies.counts == {"used": 2}

    def test_a_context_is_the_same_with_and_without(self, stack: Stack, copies: HotCopies) -> None:
        """The recent turns of a context come from the copy, word for word."""
        parts = _parts(stack, copies)
        _say(parts, stack.tenant_id, *SAID)
        texts = [
            build_context(each, stack.tenant_id, ask("Where?"), token_budget=400, conversation_id="c1").text
            for each in (parts, _parts(stack, None))
        ]

        assert texts[0] == texts[1]
        assert "京都にいます。" in texts[0]
        assert copies.counts == {"used": 1}


class TestErase:
    def test_an_erased_user_has_no_copy(self, stack: Stack, copies: HotCopies, broker: Redis) -> None:
        """It goes with the erasure, nobody who comes late brings it back, and what were there is not shown."""
        parts, key = _parts(stack, copies), _key(stack.tenant_id)
        conversation = conversation_id(key.scope_id, "c1")
        _say(parts, stack.tenant_id, *SAID)
        late = copies.read(stack.tenant_id, conversation)
        erase_user(stack.app, stack.tenant_id, "maya", hot_copies=copies)
        copies.replace(stack.tenant_id, conversation, late, sealed_through=0)
        copies.append(stack.tenant_id, conversation, late, sealed_through=0)
        held = [broker.type(name) for name in broker.scan_iter(f"{PREFIX}*")]
        assert (len(late), held) == (len(SAID), ["string"])
        assert [broker.get(name) for name in broker.scan_iter(f"{PREFIX}*")] == [""]
        broker.flushall()
        copies.replace(stack.tenant_id, conversation, late, sealed_through=0)

        assert _seen(parts, key) == []


class TestAway:
    def test_a_server_that_is_away_costs_nothing_but_speed(self, stack: Stack) -> None:
        """Recording, reading and erasing work as if nobody kept copies; that it is away is counted."""
        away = HotCopies(f"redis://127.0.0.1:{free_port()}/0", key_prefix=PREFIX, seconds=60)
        parts, key = _parts(stack, away), _key(stack.tenant_id)
        _say(parts, stack.tenant_id, *SAID)
        assert _seen(parts, key) == SAID
        erase_user(stack.app, stack.tenant_id, "maya", hot_copies=away)

        assert _seen(parts, key) == []
        assert away.counts["away"] >= 3
        assert "used" not in away.counts

    def test_something_else_under_its_key_is_no_copy(self, stack: Stack, copies: HotCopies, broker: Redis) -> None:
        """What cannot be read is passed over and replaced."""
        parts, key = _parts(stack, copies), _key(stack.tenant_id)
        _say(parts, stack.tenant_id, "one")
        (name,) = broker.scan_iter(f"{PREFIX}hot1:*")
        broker.delete(name)
        broker.rpush(name, "1 {}")

        assert _seen(parts, key) == ["one"]
        assert _seen(parts, key) == ["one"]
        assert copies.counts == {"stale": 1, "used": 1}
