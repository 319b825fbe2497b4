"""Turns put in the outbox are recorded once, in order, whatever happens to messages, workers and broker."""

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from redis import Redis
from sqlalchemy import text

from memoryos_pipeline.client import Conversation, SQLiteOutbox, TurnPublisher
from memoryos_pipeline.client import publisher as publishing
from memoryos_pipeline.client.errors import UnauthorizedError
from memoryos_pipeline.domain.errors import InvalidTurnError
from memoryos_pipeline.embedded.process import free_port
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from tests.conftest import Stack
from tests.processes import System, forwarded_port, running_system

SECRET = "the cellar key lies under the third flowerpot"
MESSAGE_KEYS = {"body", "content-encoding", "content-type", "headers", "properties"}


@pytest.fixture
def system(stack: Stack, valkey: EmbeddedValkey, tmp_path: Path) -> Iterator[System]:
    with running_system(stack, valkey, tmp_path / "processes.log") as made:
        yield made


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[SQLiteOutbox]:
    made = SQLiteOutbox(tmp_path / "outbox.sqlite")
    yield made
    made.close()


@pytest.fixture
def publisher(system: System, outbox: SQLiteOutbox) -> Iterator[TurnPublisher]:
    made = _publisher(system, outbox)
    yield made
    made.close()


def _publisher(system: System, outbox: SQLiteOutbox, **changes: str) -> TurnPublisher:
    where = {"broker_url": system.broker_url, "api_url": system.api_url, "api_key": system.api_key, **changes}
    return TurnPublisher(**where, outbox=outbox, broker_key_prefix=system.broker_key_prefix)


def _turn(number: int, conversation: str = "c", **changes: Any) -> dict[str, Any]:
    ids = {"user_id": "maya", "agent_id": "companion", "conversation_id": conversation, "client_turn_id": f"t{number}"}
    said = {"role": "user", "content": f"turn {number} 你好", "occurred_at": "2026-05-04T18:02:00-05:00"}
    return {**ids, **said, **changes}


def _recorded(system: System) -> dict[str, list[str]]:
    statement = text("""
        select c.external_id, array_agg(t.client_turn_id order by t.seq) from memoryos.turn t
          join memoryos.conversation c using (tenant_id, conversation_id) group by 1
    """)
    with system.stack.app.transaction(system.stack.tenant_id) as connection:
        return {row[0]: row[1] for row in connection.execute(statement)}


def _queued(system: System) -> list[dict[str, Any]]:
    with Redis.from_url(system.broker_url) as client:
        found = client.lrange(f"{system.broker_key_prefix}ingest", 0, -1)
    return [json.loads(each) for each in found]  # type: ignore[union-attr]


def _publish_bare(system: System, **payload: Any) -> None:
    with Celery("bare", broker=system.broker_url, set_as_current=False) as app:
        app.conf.broker_transport_options = {"global_keyprefix": system.broker_key_prefix}
        app.send_task("memoryos.ingest", kwargs=payload, queue="ingest")


class TestFlush:
    def test_every_turn_is_recorded_in_order(
        self, system: System, publisher: TurnPublisher, outbox: SQLiteOutbox
    ) -> None:
        """Two conversations of several messages each arrive whole, and the outbox is empty afterwards."""
        publisher.put([_turn(number, name) for number in range(250) for name in ("a", "b")])
        with system.worker():
            flushed = publisher.flush(60)

        assert (flushed.recorded, flushed.refused, flushed.pending) == (500, [], 0)
        assert _recorded(system) == {name: [f"t{number}" for number in range(250)] for name in ("a", "b")}
        assert outbox.pending() == 0

    def test_without_a_worker_nothing_is_lost(self, system: System, publisher: TurnPublisher) -> None:
        """The time runs out, the turns wait; with a worker the next flush records them once."""
        publisher.put([_turn(1), _turn(2)])
        assert publisher.flush(0.5).pending == 2

        with system.worker():
            assert publisher.flush(60).pending == 0
        assert _recorded(system) == {"c": ["t1", "t2"]}

    def test_one_message_of_a_conversation_is_in_flight(self, system: System, publisher: TurnPublisher) -> None:
        """Later turns stay in the outbox until the earlier ones have their receipts."""
        publisher.put([_turn(number) for number in range(250)])
        publisher.flush(0.5)
        bodies = [json.loads(_decoded(message)) for message in _queued(system)]

        assert [len(body[1]["turns"]) for body in bodies] == [100]

    def test_lost_messages_are_published_again(
        self, system: System, publisher: TurnPublisher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A broker that is wiped costs time, not turns; a message that comes twice records once."""
        monkeypatch.setattr(publishing, "REPUBLISH_SECONDS", 0.2)
        publisher.put([_turn(1), _turn(2)])
        publisher.flush(0.3)
        with Redis.from_url(system.broker_url) as client:
            client.delete(f"{system.broker_key_prefix}ingest")

        with system.worker():
            assert publisher.flush(60).pending == 0
        assert _recorded(system) == {"c": ["t1", "t2"]}

    def test_a_killed_worker_costs_time_only(
        self, system: System, publisher: TurnPublisher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """SIGKILL while messages are in flight: another worker gets the same turns again."""
        monkeypatch.setattr(publishing, "REPUBLISH_SECONDS", 1.0)
        publisher.put([_turn(number, f"c{number % 30}") for number in range(3000)])
        with ThreadPoolExecutor(1) as threads:
            flushing = threads.submit(publisher.flush, 90)
            with system.worker() as process:
                while not _recorded(system):
                    assert process.poll() is None
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            assert len(_recorded(system)) < 30, "the worker was done before it was killed"
            with system.worker():
                assert flushing.result().pending == 0

        recorded = _recorded(system)
        assert recorded == {f"c{each}": [f"t{number}" for number in range(each, 3000, 30)] for each in range(30)}

    def test_a_broker_that_is_away_is_waited_for(self, system: System, outbox: SQLiteOutbox) -> None:
        """Publishing fails fast, the turns stay, and no attempt is counted."""
        publisher = _publisher(system, outbox, broker_url="redis://127.0.0.1:1/0")
        publisher.put([_turn(1)])
        flushed = publisher.flush(1)
        publisher.close()

        assert flushed.pending == 1
        assert outbox.waiting(Conversation("maya", "companion", "c"), 9)[0].attempts == 0

    def test_a_key_that_is_refused_is_told(self, system: System, outbox: SQLiteOutbox) -> None:
        """With an unknown key no receipt can ever be read: the caller hears of it and keeps the turns."""
        publisher = _publisher(system, outbox, api_key="mem_unknown")
        publisher.put([_turn(1)])
        with pytest.raises(UnauthorizedError):
            publisher.flush(5)
        publisher.close()

        assert outbox.pending() == 1


class TestRefuse:
    def test_an_invalid_turn_never_enters_the_outbox(self, publisher: TurnPublisher, outbox: SQLiteOutbox) -> None:
        """The worker's own parser is asked first, and the whole call is refused."""
        with pytest.raises(InvalidTurnError):
            publisher.put([_turn(1), _turn(2, role="robot")])

        assert outbox.pending() == 0

    def test_a_key_used_for_another_body_is_a_refusal(self, system: System, publisher: TurnPublisher) -> None:
        """The receipt's hash is not ours: the turn is not taken for recorded, and its neighbours are kept."""
        with system.client() as client:
            client.add_turns([_turn(2, content="something else")])
        publisher.put([_turn(1), _turn(2), _turn(3)])
        with system.worker():
            flushed = publisher.flush(60)

        assert [(each.client_turn_id, each.code) for each in flushed.refused] == [("t2", "client_turn_id_conflict")]
        assert (flushed.recorded, flushed.pending) == (2, 0)
        assert _recorded(system) == {"c": ["t2", "t1", "t3"]}
        assert [each.body["content"] for each in publisher.refusals()] == ["turn 2 你好"]
        publisher.discard(publisher.refusals()[0])
        assert publisher.refusals() == []

    def test_turns_of_an_erased_user_are_refused(
        self, system: System, publisher: TurnPublisher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The worker drops them in silence; after three publishes the API says why."""
        monkeypatch.setattr(publishing, "REPUBLISH_SECONDS", 0.1)
        with system.client() as client:
            client.add("hello", user_id="maya")
            client.delete_user("maya")
        publisher.put([_turn(1), _turn(2)])
        with system.worker():
            flushed = publisher.flush(60)

        assert [(each.client_turn_id, each.code) for each in flushed.refused] == [("t1", "erased"), ("t2", "erased")]


class TestMask:
    def test_a_message_shows_no_turn_outside_its_body(self, system: System, publisher: TurnPublisher) -> None:
        """Headers are copied into events, logs and Flower; they hold neither text nor key."""
        publisher.put([_turn(1, content=SECRET)])
        publisher.flush(0.5)
        message = _queued(system)[0]
        beside_the_body = json.dumps({name: part for name, part in message.items() if name != "body"})

        assert set(message) == MESSAGE_KEYS
        assert SECRET not in beside_the_body
        assert system.api_key not in beside_the_body
        assert SECRET in _decoded(message)


class TestBarePublish:
    def test_a_bare_message_records_its_good_turns(self, system: System) -> None:
        """A turn that cannot be recorded is dropped alone; a payload or key that is wrong records nothing."""
        with system.worker(), system.client() as client:
            _publish_bare(system, v=1, api_key="mem_wrong", turns=[_turn(7)])
            _publish_bare(system, v=9, api_key=system.api_key, turns=[_turn(8)])
            _publish_bare(system, v=1, api_key=system.api_key, turns="turns")
            _publish_bare(system, v=1, api_key=system.api_key, turns=[_turn(1), _turn(2, role="robot"), "x", _turn(3)])
            _wait_for_receipt(client, "t3")

        assert _recorded(system) == {"c": ["t1", "t3"]}

    def test_what_is_dropped_is_told_without_its_content(self, system: System) -> None:
        """The worker's log names reasons and fields; it holds neither text nor key, however the message was made."""
        dropped = _turn(1, content=SECRET, role=SECRET), _turn(2, content=SECRET + "\0")
        with system.worker(), system.client() as client:
            _publish_bare(system, v=1, api_key=system.api_key, turns=[*dropped, _turn(3, content=SECRET)])
            _publish_bare(system, v=1, api_key=SECRET, turns=[_turn(4, content=SECRET)], more=SECRET)
            _publish_bare(system, v=1, api_key=system.api_key, turns=[_turn(5)])
            _wait_for_receipt(client, "t5")
        log = system.log.read_text(encoding="utf-8")

        assert "turns.0.role" in log
        assert "unknown_key" in log
        assert SECRET not in log
        assert system.api_key not in log

    def test_a_message_outlives_a_database_that_is_away(self, system: System) -> None:
        """A worker that cannot reach Postgres puts the message back, and records it once Postgres answers."""
        away = free_port()
        _publish_bare(system, v=1, api_key=system.api_key, turns=[_turn(1)])
        with system.process("worker", "--queues", "ingest", MEMORYOS_DATABASE_URL=system.database_url_at(away)):
            _wait_for_line(system, "ingest_requeued")
            with forwarded_port(away, to=system.stack.server.port), system.client() as client:
                _wait_for_receipt(client, "t1")


def _wait_for_receipt(client: Any, client_turn_id: str) -> None:
    for _ in range(300):
        if client.receipts(Conversation("maya", "companion", "c"), [client_turn_id]):
            return
        time.sleep(0.1)
    pytest.fail("no receipt within 30 s")


def _wait_for_line(system: System, words: str) -> None:
    for _ in range(300):
        if words in system.log.read_text(encoding="utf-8"):
            return
        time.sleep(0.1)
    pytest.fail(f"the log did not say {words} within 30 s")


def _decoded(message: dict[str, Any]) -> str:
    import base64

    return base64.b64decode(message["body"]).decode()
