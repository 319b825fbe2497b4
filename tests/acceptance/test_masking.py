"""What people said shows nowhere but in the database, also when a bare Celery application publishes it."""

import base64
import contextlib
import html
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from celery import Celery
from redis import Redis

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.embedded.plan import FLOWER_USER, Endpoints, flower_program
from memoryos_pipeline.embedded.process import free_port, start_program, stop_server
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from tests.acceptance.running import wait_until
from tests.builders import rows
from tests.conftest import Stack
from tests.processes import STOP_SECONDS, System, running_system

CANARIES = ("zanzibarquokka", "ひみつのカナリア", "비밀카나리아", "秘密金丝雀")
CANARY = " ".join(CANARIES)
PASSWORD = "word"
QUEUES = "ingest,maintenance"
HTTP = {"user_id": "maya", "conversation_id": "http", "client_turn_id": "http", "role": "user", "speaker": "Maya"}
SAID_AT = "2026-05-04T18:02:00+09:00"
PROPER = ["http", "last", "proper"]
DROPPED = 6
SUCCEEDED = 7
RECORDED = """
    select client_turn_id from memoryos.turn where client_turn_id in ('http', 'last', 'proper', 'later') order by 1
"""
OPEN_WITHOUT_PASSWORD = ["/healthcheck", "/metrics"]
"""What Flower answers to anybody: that it lives, and numbers by the names of workers and tasks."""
DATATABLE = "/tasks/datatable?draw=1&start=0&length=500&order[0][column]=0&columns[0][data]=name"
PAGES = [
    "/", "/?json=1", "/workers", "/workers?refresh=1", "/tasks", DATATABLE, "/broker", "/api/workers?refresh=1",
    "/api/tasks?limit=500", "/api/task/types", "/api/queues/length", "/healthcheck", "/metrics",
]  # fmt: skip
ORDERS = ["/api/task/send-task/memoryos.ingest", "/api/worker/shutdown/x", "/api/task/revoke/x"]


def _shows(text: str) -> list[str]:
    """Return the canaries in a text, however it writes what is not ASCII."""
    written = {each: {each, json.dumps(each)[1:-1], html.escape(each), ascii(each)[1:-1]} for each in CANARIES}
    return [each for each, ways in written.items() if any(way in text for way in ways)]


@dataclass
class Watched:
    """A running system under observation: its logs, every Celery event, and Flower."""

    system: System
    flower_url: str
    flower_log: Path
    app: Celery
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def log(self) -> str:
        return self.system.log.read_text(encoding="utf-8")

    def flower(self, path: str, *, password: str | None = PASSWORD, method: str = "GET") -> httpx.Response:
        login = base64.b64encode(f"{FLOWER_USER}:{password}".encode()).decode()
        headers = {} if password is None else {"authorization": f"Basic {login}"}
        return httpx.request(method, f"{self.flower_url}{path}", headers=headers, trust_env=False, timeout=30)

    def tasks(self) -> dict[str, Any]:
        """Return what Flower knows of tasks, by their ids."""
        found: dict[str, Any] = self.flower("/api/tasks?limit=500").json()
        return found

    def count(self, state: str) -> int:
        return sum(task["state"] == state for task in self.tasks().values())

    def pages(self) -> list[str]:
        """Return every address of Flower there is something to see at."""
        workers = list(self.flower("/api/workers?refresh=1").json())
        ids = list(self.tasks())
        each = [f"{page}/{name}" for page in ("/task", "/api/task/info", "/api/task/result") for name in ids]
        return [*PAGES, *[f"/worker/{name}" for name in workers], *each]


def _bare_app(system: System, **settings: Any) -> Celery:
    """Return somebody's Celery application: nothing of ours, and every setting as Celery has it."""
    app = Celery("somebody", broker=system.broker_url, set_as_current=False)
    app.conf.update(broker_transport_options={"global_keyprefix": system.broker_key_prefix}, **settings)
    return app


@contextmanager
def _flower(system: System, log: Path) -> Iterator[str]:
    """Run Flower the way the supervisor starts it."""
    endpoints = Endpoints(
        database_url="", ledger_url="", owner_url="", broker_url=system.broker_url, api_host="127.0.0.1",
        api_port=1, flower_port=free_port(), flower_password=PASSWORD,
    )  # fmt: skip
    program = flower_program(endpoints, system.environment())
    process = start_program(program.command, log=log, environment=program.environment)
    try:
        yield endpoints.flower_url
    finally:
        stop_server(process, how=signal.SIGTERM, seconds=STOP_SECONDS)


def _turn(name: str) -> dict[str, Any]:
    return {**HTTP, "conversation_id": "queue", "client_turn_id": name, "content": CANARY, "occurred_at": SAID_AT}


def _publish_everything(app: Celery, system: System) -> None:
    """Publish what people say in every way a bare application can, the wrong ways too; the last one is in order."""
    proper = {"v": 1, "api_key": system.api_key, "turns": [_turn("proper")]}
    shown = {"argsrepr": CANARY, "kwargsrepr": CANARY, "shadow": CANARY}
    send = app.send_task
    send("memoryos.ingest", kwargs=proper, queue="ingest", **shown)
    send("memoryos.ingest", kwargs={**proper, "turns": [_turn("later")]}, queue="ingest", countdown=3600)
    send("memoryos.ingest", kwargs={**proper, "turns": [_turn(CANARY)]}, queue="ingest", task_id=CANARY)
    send("memoryos.ingest", kwargs={**proper, CANARY: CANARY, "turns": [{CANARY: CANARY}]}, queue="ingest")
    send("memoryos.ingest", kwargs={**proper, "v": CANARY, "api_key": CANARY}, queue="ingest")
    send("memoryos.ingest", args=[CANARY, {"content": CANARY}], queue="ingest")
    send("memoryos.ingest", args=[CANARY], queue="ingest", headers={"expires": CANARY})
    send("memoryos.ingest", args=[CANARY], queue="ingest", serializer="pickle")
    send("memoryos.maintenance", args=[CANARY], kwargs={CANARY: CANARY}, queue="maintenance")
    send("memoryos.sweep", args=[CANARY, CANARY], queue="maintenance")
    send(f"{CANARY}.task", args=[CANARY], kwargs={"content": CANARY}, queue="ingest")
    with app.producer_pool.acquire(block=True) as producer:
        whole = {"task": "memoryos.ingest", "id": str(mint_id()), "lang": "py"}
        for headers, kind in (({}, "text/plain"), (whole, "text/plain"), (whole, "application/json")):
            producer.publish(CANARY, routing_key="ingest", content_type=kind, content_encoding="utf-8", headers=headers)
    send("memoryos.ingest", kwargs={**proper, "turns": [_turn("last")]}, queue="ingest")


def _post_badly(system: System, api_url: str) -> None:
    headers = {"authorization": f"Bearer {system.api_key}"}
    for body in ({**_turn("http"), "conversation_id": "http"}, {**_turn("bad"), "role": CANARY}, {CANARY: CANARY}):
        httpx.post(f"{api_url}/v1/turns", json={"turns": [body]}, headers=headers, trust_env=False)
    httpx.post(f"{api_url}/v1/turns", content=CANARY.encode(), headers=headers, trust_env=False)
    httpx.get(f"{api_url}/v1/{CANARY}", params={"query": CANARY}, headers=headers, trust_env=False)


@contextmanager
def _captured(app: Celery, events: list[dict[str, Any]]) -> Iterator[None]:
    """Keep every Celery event that is sent until the block ends."""
    stopped = threading.Event()

    def listen() -> None:
        with app.connection_for_read() as connection:
            receiver = app.events.Receiver(connection, handlers={"*": events.append})
            while not stopped.is_set():
                with contextlib.suppress(TimeoutError):
                    receiver.capture(limit=None, timeout=0.5, wakeup=False)

    thread = threading.Thread(target=listen, name="events")
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


@pytest.fixture
def told() -> bool:
    """Whether the publisher sends an event for each message it sends."""
    return False


@pytest.fixture
def watched(stack: Stack, own_valkey: EmbeddedValkey, tmp_path: Path, told: bool) -> Iterator[Watched]:
    """A system that was sent everything by a bare application, when all of it has been dealt with."""
    with ExitStack() as started:
        system = started.enter_context(running_system(stack, own_valkey, tmp_path / "processes.log"))
        port = free_port()
        started.enter_context(system.process("api", MEMORYOS_API_PORT=str(port)))
        flower_url = started.enter_context(_flower(system, tmp_path / "flower.log"))
        app = _bare_app(system, task_send_sent_event=True) if told else _bare_app(system)
        watched = Watched(system, flower_url, tmp_path / "flower.log", app)
        started.enter_context(_captured(app, watched.events))
        started.enter_context(system.worker(QUEUES))
        _wait_until_up(watched, f"http://127.0.0.1:{port}/livez")
        _publish_everything(app, system)
        _post_badly(system, f"http://127.0.0.1:{port}")
        _wait_until_dealt_with(watched)
        yield watched


def _wait_until_up(watched: Watched, api_url: str) -> None:
    assert wait_until(lambda: _answers(api_url), seconds=60), watched.log
    assert wait_until(lambda: _answers(f"{watched.flower_url}/healthcheck"), seconds=60), watched.flower_log.read_text()
    assert wait_until(lambda: " ready." in watched.log, seconds=60), watched.log
    assert wait_until(lambda: watched.flower("/api/workers?refresh=1").json(), seconds=60), (
        watched.flower_log.read_text()
    )


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False, timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def _wait_until_dealt_with(watched: Watched) -> None:
    """Return once the worker is done with all but the message for later, and Flower knows of it."""
    with Redis.from_url(watched.system.broker_url) as broker:
        prefix = watched.system.broker_key_prefix
        assert wait_until(lambda: broker.hlen(f"{prefix}unacked") == 1, seconds=30), watched.log
    assert wait_until(lambda: rows(watched.system.stack, RECORDED) == [(name,) for name in PROPER], seconds=30)
    assert wait_until(lambda: watched.log.count("message_dropped") >= DROPPED, seconds=30), watched.log
    assert wait_until(lambda: watched.count("SUCCESS") >= SUCCEEDED, seconds=30), watched.tasks()
    assert wait_until(lambda: watched.count("FAILURE") >= 1, seconds=30), watched.tasks()


def _without_results(pages: dict[str, httpx.Response]) -> set[str]:
    """Results are kept nowhere, so there is none to show."""
    return {page for page in pages if page.startswith("/api/task/result/")}


def _waiting_request(watched: Watched) -> str:
    """Return what a worker tells of the message that waits for its time; Celery itself would list its arguments."""
    inspect = watched.app.control.inspect(timeout=10, limit=1)
    ((waiting,),) = inspect.scheduled().values()
    assert waiting["request"]["name"] == "memoryos.ingest"
    return json.dumps([waiting, inspect.query_task(waiting["request"]["id"])])


@pytest.mark.slow
class TestMasking:
    @pytest.mark.parametrize("told", [False, True], ids=["as-it-comes", "with-sent-events"])
    def test_nothing_that_was_said_shows(self, watched: Watched, told: bool) -> None:
        """No page of Flower, no event of ours, no inspection and no log line has a word of it, in four languages."""
        pages = {page: watched.flower(page) for page in watched.pages()}
        leaking = {event["type"] for event in watched.events if _shows(json.dumps(event))}

        assert [page for page, answer in pages.items() if _shows(answer.text)] == []
        assert {page for page, answer in pages.items() if answer.status_code != 200} == _without_results(pages)
        assert {"task-received", "task-succeeded", "task-failed"} <= {event["type"] for event in watched.events}
        assert leaking == ({"task-sent"} if told else set()), "what a publisher tells of its own sending is its own"
        assert _shows(_waiting_request(watched)) == []
        assert [line for line in watched.log.splitlines() if _shows(line)] == []
        assert _shows(watched.flower_log.read_text(encoding="utf-8")) == []

    def test_flower_is_closed(self, watched: Watched) -> None:
        """Without the password there is nothing but a sign of life and numbers, with it nothing can be done."""
        for password in (None, "wrong"):
            answers = {page: watched.flower(page, password=password).status_code for page in watched.pages()}
            assert [page for page, status in answers.items() if status != 401] == OPEN_WITHOUT_PASSWORD
            assert {watched.flower(each, password=password, method="POST").status_code for each in ORDERS} == {401}
        assert {watched.flower(each, method="POST").status_code for each in ORDERS} == {403}
