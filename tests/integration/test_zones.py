"""Where a process runs changes nothing: moments are instants, days are those of whoever spoke or asks."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from starlette.testclient import TestClient

from memoryos_pipeline.stages.advance import advance
from memoryos_pipeline.stages.embed import embed
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.sweeps import owe_due
from tests.builders import claim_due, rows, set_clock
from tests.builders_recall import recall_parts
from tests.conftest import Stack
from tests.integration.api.test_recall import client_of

ZONES = ("UTC", "Asia/Tokyo", "America/New_York")
SENT = (
    "2025-03-01T23:30:00+09:00", "2025-03-01T23:30:00-05:00", "2025-03-01T23:30:00Z", "2025-03-01T23:30:00.123456Z",
    "2025-03-02T00:10:00+05:45",
)  # fmt: skip
REFUSED = ("2025-03-01T23:30:00", "2025-03-01", "2025-03-01T23:30", "20250301", 1740871800, "1740871800", "23:30Z")
ASKED = {
    "2025-03-10T12:00:00+09:00": {"t0"},
    "2025-03-10T12:00:00-05:00": {"t0", "t1", "t2", "t3", "t4"},
    "2025-03-10T12:00:00Z": {"t0", "t2", "t3", "t4"},
}
"""From where somebody asks about the first of March, and which turns were said on that day there."""


@contextmanager
def _running_in(zone: str, stack: Stack) -> Iterator[Parts]:
    """Give this process, and the sessions it opens, another time zone."""
    before = {name: os.environ.get(name) for name in ("TZ", "PGTZ")}
    os.environ.update(TZ=zone, PGTZ=zone)
    time.tzset()
    database = Database(stack.url("app"), pool_size=2)
    try:
        parts = recall_parts(stack)
        yield Parts(database, parts.embedder, parts.language_model)
    finally:
        database.dispose()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        time.tzset()


def _body(number: int, sent: object, **changes: Any) -> dict[str, Any]:
    return {
        "user_id": "maya", "conversation_id": "c1", "client_turn_id": f"t{number}", "role": "user",
        "content": f"the ferry was late {number}", "occurred_at": sent, **changes,
    }  # fmt: skip


def _said_on_the_first(client: TestClient, user: str, now: str) -> set[str]:
    body = {"user_id": user, "query": "Which ferry on March 1?", "now": now, "limit": 20, "kinds": ["turn"]}
    results = client.post("/v1/search", json=body).json()["results"]
    return {f"t{result['content'][-1]}" for result in results if result["features"]["date"] == 1.0}


def _sealed(stack: Stack, parts: Parts, user: str) -> list[tuple[Any, ...]]:
    """Sweep and seal what is idle; return the pages."""
    owe_due(stack.ledger_database, name="flush")
    for kind, stage in (("advance", advance), ("embed", embed)):
        for lease in claim_due(stack, kind):  # type: ignore[arg-type]
            stage(parts, lease)
    query = """
        select p.first_seq, p.last_seq, p.first_turn_at, p.last_turn_at, p.indexed_at is not null
          from memoryos.page p join memoryos.scope s using (tenant_id, scope_id) where s.user_id = :user order by 1"""
    return rows(stack, query, user=user)


class TestZones:
    def test_the_same_everywhere(self, stack: Stack) -> None:
        """Recorded, swept, read and asked about by a process in London, Tokyo or New York: not one value differs."""
        outcomes = []
        for number, zone in enumerate(ZONES):
            user = f"user {number}"
            set_clock(stack, datetime.fromisoformat("2025-03-05T00:00:00Z"))
            with _running_in(zone, stack) as parts, client_of(stack, parts, "ingest", "read") as client:
                turns = [_body(n, sent, user_id=user) for n, sent in enumerate(SENT)]
                assert client.post("/v1/turns", json={"turns": turns}).status_code == 202
                set_clock(stack, datetime.fromisoformat("2025-03-05T00:31:00Z"))
                pages = _sealed(stack, parts, user)
                told = client.get("/v1/turns", params={"user_id": user}).json()["turns"]
                days = {now: _said_on_the_first(client, user, now) for now in ASKED}
            outcomes.append((pages, [turn["occurred_at"] for turn in told], days))
            moments = [datetime.fromisoformat(moment) for moment in outcomes[-1][1]]
            assert sorted(moments) == sorted(datetime.fromisoformat(sent) for sent in SENT)
            assert all(moment.utcoffset() is not None for moment in moments)

        assert [days for _, _, days in outcomes] == [ASKED] * len(ZONES)
        assert outcomes[1:] == outcomes[:-1]

    def test_a_moment_without_a_place_is_refused(self, stack: Stack) -> None:
        """Neither a bare date nor a bare clock nor a number says which moment it was."""
        with client_of(stack, recall_parts(stack), "ingest") as client:
            for sent in REFUSED:
                answer = client.post("/v1/turns", json=_body(0, sent))
                assert (answer.status_code, answer.json()["error"]["field"]) == (422, "occurred_at"), sent
