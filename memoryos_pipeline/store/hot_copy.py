"""A copy of hot tails in Valkey or Redis: may be dropped at any time, and is only believed when Postgres agrees.

It is never asked while a connection to Postgres is held. When the server is away nothing is copied and nothing fails.
"""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import structlog
from redis import Redis, RedisError

from memoryos_pipeline.store.hot import TailTurn, read_turn, write_turn

log = structlog.get_logger(__name__)

MOST_COPIED = 200
"""Turns of a copy at most; a longer tail is a backlog, which pages work off."""
TIMEOUT_SECONDS = 0.25
AWAY_SECONDS = 5.0
"""After a failure the server is left alone for so long: a reader must not wait for one that is away."""
ERASED_AT_ONCE = 500
ROOM_SHARE = 0.5
"""The server is a doorbell first: when more than this share of its memory is used, nothing is copied."""
ROOM_SECONDS = 5.0
"""How often it is asked."""

# KEYS: the copy, the mark of an erasure. ARGV: sealed_through, seq of the first turn, milliseconds to live, most turns,
# whether to begin anew, the turns. A copy stays a run without gaps: what does not follow on ends it.
PUT = """
    local sealed, first = tonumber(ARGV[1]), tonumber(ARGV[2])
    if redis.call('exists', KEYS[2]) == 1 then return 0 end
    if ARGV[5] == '1' then redis.call('del', KEYS[1]) end
    local newest = redis.call('lindex', KEYS[1], -1)
    local through = newest and tonumber(string.match(newest, '^%d+')) or sealed
    if first ~= through + 1 then redis.call('del', KEYS[1]) return 0 end
    for place = 6, #ARGV do redis.call('rpush', KEYS[1], ARGV[place]) end
    local oldest = first + #ARGV - 5 - redis.call('llen', KEYS[1])
    if oldest <= sealed then redis.call('ltrim', KEYS[1], sealed - oldest + 1, -1) end
    if redis.call('llen', KEYS[1]) > tonumber(ARGV[4]) then redis.call('del', KEYS[1]) return 0 end
    redis.call('pexpire', KEYS[1], ARGV[3])
    return 1
"""


class HotCopies:
    """The copies of one process's server; each lives for `seconds` after it was last written."""

    def __init__(self, url: str, *, key_prefix: str, seconds: float) -> None:
        self._client = Redis.from_url(
            url, decode_responses=True, retry=None, socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
        )  # fmt: skip
        self._prefix = f"{key_prefix}hot1:"
        self._milliseconds = max(1, int(seconds * 1_000))
        self._lock = threading.Lock()
        self._away_until = 0.0
        self._counts: Counter[str] = Counter()
        self._has_room, self._ask_room_at = True, 0.0

    @property
    def counts(self) -> dict[str, int]:
        """How often a copy was `used`, `stale`, or the server was `away`, in this process."""
        with self._lock:
            return dict(self._counts)

    def note(self, outcome: str) -> None:
        """Count how one read went."""
        with self._lock:
            self._counts[outcome] += 1

    def read(self, tenant_id: UUID, conversation_id: UUID) -> list[TailTurn]:
        """Return the copy of a tail, oldest turn first; empty when there is none or the server is away."""
        if self._is_away():
            return []
        try:
            written = self._client.lrange(self._key(tenant_id, conversation_id), 0, -1)
            return [read_turn(str(each)) for each in written]
        except RedisError as error:
            self._note_away(error)
        except (ValueError, TypeError) as error:
            log.warning("hot_copy_unreadable", conversation_id=str(conversation_id), error=type(error).__name__)
        return []

    def append(
        self, tenant_id: UUID, conversation_id: UUID, turns: Sequence[TailTurn], *, sealed_through: int
    ) -> None:  # fmt: skip
        """Add turns that were just committed, in order; a copy they do not follow on is dropped."""
        self._put(tenant_id, conversation_id, turns, sealed_through=sealed_through, anew=False)

    def replace(
        self, tenant_id: UUID, conversation_id: UUID, turns: Sequence[TailTurn], *, sealed_through: int
    ) -> None:  # fmt: skip
        """Put a tail as it was read from Postgres in the place of whatever there is."""
        self._put(tenant_id, conversation_id, turns, sealed_through=sealed_through, anew=True)

    def erase(self, tenant_id: UUID, conversation_ids: Sequence[UUID]) -> None:
        """Drop the copies of erased conversations, and keep whoever comes late from bringing one back.

        Call it after the commit. When the server is away, what it holds ends with its time to live; it is not shown.
        """
        try:
            for start in range(0, len(conversation_ids), ERASED_AT_ONCE):
                with self._client.pipeline(transaction=False) as pipeline:
                    for each in conversation_ids[start : start + ERASED_AT_ONCE]:
                        pipeline.set(self._mark(tenant_id, each), "", px=2 * self._milliseconds)
                        pipeline.unlink(self._key(tenant_id, each))
                    pipeline.execute()
        except RedisError as error:
            self._note_away(error)

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def _put(
        self, tenant_id: UUID, conversation_id: UUID, turns: Sequence[TailTurn], *, sealed_through: int, anew: bool
    ) -> None:  # fmt: skip
        if not turns or self._is_away():
            return
        keys = [self._key(tenant_id, conversation_id), self._mark(tenant_id, conversation_id)]
        kept = turns[-MOST_COPIED:]
        values = [sealed_through, kept[0].seq, self._milliseconds, MOST_COPIED, int(anew)]
        try:
            if not self._room():
                self._client.unlink(keys[0])
                return
            self._client.eval(PUT, len(keys), *keys, *map(str, values), *map(write_turn, kept))
        except RedisError as error:
            self._note_away(error)

    def _room(self) -> bool:
        now = time.monotonic()
        if now >= self._ask_room_at:
            memory = self._client.info("memory")
            limit = int(memory.get("maxmemory", 0))
            self._has_room = not limit or int(memory["used_memory"]) < ROOM_SHARE * limit
            self._ask_room_at = now + ROOM_SECONDS
        return self._has_room

    def _key(self, tenant_id: UUID, conversation_id: UUID) -> str:
        return f"{self._prefix}{tenant_id}:{conversation_id}"

    def _mark(self, tenant_id: UUID, conversation_id: UUID) -> str:
        return f"{self._prefix}erased:{tenant_id}:{conversation_id}"

    def _is_away(self) -> bool:
        if time.monotonic() >= self._away_until:
            return False
        self.note("away")
        return True

    def _note_away(self, error: RedisError) -> None:
        self._away_until = time.monotonic() + AWAY_SECONDS
        self.note("away")
        log.warning("hot_copy_away", error=type(error).__name__, seconds=AWAY_SECONDS)
