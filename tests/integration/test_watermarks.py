"""How far a conversation has come, stage by stage, in numbers and words; and reads that wait for what was written."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import uvicorn
from sqlalchemy import text
from starlette.testclient import TestClient
from typer.testing import CliRunner, Result

from memoryos_pipeline.api.app import create_app
from memoryos_pipeline.cli.main import app as memoryos
from memoryos_pipeline.client.errors import NotFoundError, NotThereYetError
from memoryos_pipeline.client.http import MemoryClient
from memoryos_pipeline.domain.errors import ModelRefusedError
from memoryos_pipeline.domain.work import Lease, RetryDecision
from memoryos_pipeline.embedded.process import free_port
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.pipeline import STAGES
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.tenants import mint_key
from tests.builders import claim_due, close, numbered, record
from tests.conftest import Stack

MARKS = ("recorded", "sealed", "summarized", "embedded", "segmented", "distilled", "merged")
WHO = {"user_id": "maya", "agent_id": "companion"}


@pytest.fixture
def parts(stack: Stack) -> Parts:
    """Parts that need no network."""
    embedder = HashingEmbedder()
    return Parts(stack.app, embedder, ExtractiveModel(embedder))


@pytest.fixture
def client(stack: Stack, parts: Parts) -> Iterator[TestClient]:
    """The API over this database."""
    headers = {"authorization": f"Bearer {mint_key(stack.owner, stack.tenant_id)}"}
    with TestClient(create_app(parts), headers=headers, raise_server_exceptions=False) as client:
        yield client


def _work(stack: Stack, parts: Parts, *kinds: str) -> None:
    """Do whatever is due of these kinds, until nothing is; no kind means all."""
    while leases := claim_due(stack):
        mine = [lease for lease in leases if not kinds or lease.kind in kinds]
        stack.ledger.release([lease for lease in leases if lease not in mine])
        for lease in mine:
            STAGES[lease.kind](parts, lease)
        if not mine:
            return


def _bury(stack: Stack, kind: str) -> Lease:
    leases = claim_due(stack)
    [lease, *others] = sorted(leases, key=lambda lease: lease.kind != kind)
    stack.ledger.release(others)
    stack.ledger.fail(lease, RetryDecision(True, 0, True), error_class="permanent", error=str(ModelRefusedError("no")))
    return lease


def _marks(client: TestClient, conversation: str = "c1") -> dict[str, Any]:
    answer = client.get(f"/v1/conversations/{quote(conversation, safe='')}/watermarks", params=WHO)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _through(marks: dict[str, Any]) -> list[int]:
    return [marks[name] for name in MARKS]


class TestWatermarks:
    def test_follow_a_conversation_through_the_stages(self, stack: Stack, parts: Parts, client: TestClient) -> None:
        """Each stage moves its own number, and says what it waits for until it has."""
        record(stack, *numbered(13))
        fresh = _marks(client)
        _work(stack, parts, "advance")
        sealed = _marks(client)
        _work(stack, parts, "embed")
        embedded = _marks(client)
        _work(stack, parts)
        done = _marks(client)

        assert (_through(fresh), fresh["sealing_owed"]) == ([13, 0, 0, 0, 0, 0, 0], True)
        assert fresh["waits_for"]["sealed"].startswith("advance work ")
        assert (_through(sealed), sealed["sealing_owed"]) == ([13, 5, 0, 0, 0, 0, 0], False)
        assert "8 turns are hot" in sealed["waits_for"]["sealed"]
        assert "embed work" in sealed["waits_for"]["embedded"]
        assert _through(embedded) == [13, 5, 0, 5, 0, 0, 0]
        assert "summarize work" in embedded["waits_for"]["segmented"]
        assert _through(done) == [13, 5, 5, 5, 5, 0, 0]
        assert "is warm: it is distilled when it cools" in done["waits_for"]["distilled"]
        assert done["waits_for"]["embedded"] is None

    def test_end_with_everything_merged(self, stack: Stack, parts: Parts, client: TestClient) -> None:
        """A conversation that is over and cold has come through every stage and waits for nothing."""
        close(stack, record(stack, *numbered(7)))
        _work(stack, parts)
        with stack.owner.transaction(stack.tenant_id) as connection:
            connection.execute(text("update memoryos.page set cools_at = memoryos.now()"))
            connection.execute(text("update memoryos.page set heat = 0.1, heat_at = memoryos.now()"))
        from memoryos_pipeline.store.sweeps import owe_due

        owe_due(stack.ledger_database)
        _work(stack, parts)
        marks = _marks(client)

        assert _through(marks) == [7] * 7
        assert set(marks["waits_for"].values()) == {None}

    def test_are_contiguous(self, stack: Stack, parts: Parts, client: TestClient) -> None:
        """A later page that is further does not move the mark past one that is not; the dead one is named."""
        close(stack, record(stack, *numbered(10)))
        _work(stack, parts, "advance")
        dead = _bury(stack, "summarize")
        _work(stack, parts)
        marks = _marks(client)
        first = dead.subject_key == str(_first_page(stack))

        assert marks["summarized"] == (0 if first else 5)
        assert f"`memoryos dead replay {dead.work_id}`" in marks["waits_for"]["summarized"]

    def test_a_name_with_a_slash_is_a_name(self, stack: Stack, client: TestClient) -> None:
        """Callers name conversations as they like."""
        record(stack, *numbered(2), conversation="日記/2026 #1?")

        assert _marks(client, "日記/2026 #1?")["recorded"] == 2

    @pytest.mark.parametrize(
        ("path", "params", "status"),
        [("c2", WHO, 404), ("c1", {"user_id": "noah"}, 404), ("c1", {}, 422), ("c1", {"user_id": "a\nb"}, 422)],
    )
    def test_what_is_not_there_is_said(
        self, stack: Stack, client: TestClient, path: str, params: dict[str, str], status: int
    ) -> None:
        """An unknown conversation is a 404, a bad name a 422; another user's is unknown."""
        record(stack, "hello")
        answer = client.get(f"/v1/conversations/{path}/watermarks", params=params)

        assert answer.status_code == status
        assert answer.json()["error"]["message"]


def _first_page(stack: Stack) -> Any:
    with stack.app.transaction(stack.tenant_id) as connection:
        return connection.execute(text("select page_id from memoryos.page where first_seq = 1")).scalar_one()


class TestMinPosition:
    def _post(self, client: TestClient, name: str) -> int:
        turn = {**WHO, "conversation_id": "c1", "client_turn_id": name, "role": "user", "speaker": "Maya",
                "content": f"The key number {name} is blue.", "occurred_at": "2026-03-02T10:00:00+09:00"}  # fmt: skip
        position: int = client.post("/v1/turns", json=turn).json()["position"]
        return position

    def _search(self, client: TestClient, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = client.post("/v1/search", json={**WHO, "query": "blue key", **more}).json()
        return answer

    def test_what_was_acknowledged_is_read(self, client: TestClient) -> None:
        """The position of a receipt is never behind, and the turn is found at once."""
        position = self._post(client, "t1")
        answer = self._search(client, min_position=position)

        assert answer["behind"] is None
        assert answer["results"][0]["content"] == "The key number t1 is blue."
        assert "behind" not in self._search(client)

    @pytest.mark.parametrize("path", ["/v1/search", "/v1/context", "/v1/answer"])
    def test_what_is_not_recorded_is_told(self, client: TestClient, path: str) -> None:
        """A position nobody has written yet is waited for as long as was asked, then said."""
        position = self._post(client, "t1") + 1_000_000
        started = time.monotonic()
        answer = client.post(path, json={**WHO, "query": "key", "min_position": position, "max_wait_ms": 300}).json()

        assert 0.3 <= time.monotonic() - started < 3
        assert answer["behind"]["recorded"] is False
        assert f"position {position} is not recorded yet" in answer["behind"]["missing"]

    def test_a_transaction_that_commits_meanwhile_is_waited_for(self, stack: Stack, client: TestClient) -> None:
        """The read returns as soon as the turn is there, long before its bound."""
        self._post(client, "t1")
        with stack.app.engine.connect() as connection:
            writing = connection.begin()
            position = int(connection.execute(text("select pg_current_xact_id()::text")).scalar_one())
            commit = threading.Timer(0.4, writing.commit)
            commit.start()
            started = time.monotonic()
            answer = self._search(client, min_position=position, max_wait_ms=5_000)
            commit.join()

        assert answer["behind"] is None
        assert 0.3 < time.monotonic() - started < 3

    def test_sealed_turns_without_vectors_are_told(self, stack: Stack, parts: Parts, client: TestClient) -> None:
        """Until its page is indexed, the answer says how many turns are found by their words only."""
        record(stack, *numbered(13), conversation="c0")
        position = self._post(client, "t1")
        _work(stack, parts, "advance")
        before = self._search(client, min_position=position)
        _work(stack, parts, "embed")

        assert before["behind"]["unindexed_turns"] == 5
        assert before["behind"]["recorded"] is True
        assert self._search(client, min_position=position)["behind"] is None

    @pytest.mark.parametrize("change", [{"min_position": -1}, {"min_position": 2**63}, {"max_wait_ms": 5_001}])
    def test_bounds_are_kept(self, client: TestClient, change: dict[str, int]) -> None:
        """A position that cannot be and a wait that is too long are refused."""
        answer = client.post("/v1/search", json={**WHO, "query": "key", **change})

        assert (answer.status_code, answer.json()["error"]["field"]) == (422, next(iter(change)))


@pytest.fixture
def served(stack: Stack, parts: Parts, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryClient]:
    """A client, and an environment for the command, of an API on a port."""
    port, key = free_port(), mint_key(stack.owner, stack.tenant_id)
    monkeypatch.setenv("MEMORYOS_API_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("MEMORYOS_API_KEY", key)
    server = uvicorn.Server(uvicorn.Config(create_app(parts), port=port, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    with MemoryClient(f"http://127.0.0.1:{port}", key) as client:
        yield client
    server.should_exit = True
    thread.join()


class TestWait:
    def _wait(self, *arguments: str) -> Result:
        command = ["wait", "--user", "maya", "--agent", "companion", *arguments]
        return CliRunner().invoke(memoryos, command, env={"COLUMNS": "200"})

    def test_returns_when_the_stage_is_through(self, stack: Stack, parts: Parts, served: MemoryClient) -> None:
        """What leaves the hot buffer has come through; the hot turns are not waited for."""
        record(stack, *numbered(13))
        worker = threading.Timer(0.3, _work, (stack, parts))
        worker.start()
        marks = served.wait_through("c1", user_id="maya", agent_id="companion", through="segmented", timeout_seconds=20)
        worker.join()
        result = self._wait("--conversation", "c1", "--through", "embedded", "--json")

        assert (marks["segmented"], marks["recorded"]) == (5, 13)
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout.splitlines()[-1])["embedded"] == 5
        assert "embedded through turn 5" in self._wait("--conversation", "c1").output

    def test_says_what_is_missing_when_time_is_up(self, stack: Stack, served: MemoryClient) -> None:
        """Nobody works: the command ends with 1 and names the work, and the client raises it."""
        record(stack, *numbered(13))
        result = self._wait("--conversation", "c1", "--through", "sealed", "--timeout", "0.3")

        assert result.exit_code == 1
        assert "advance work" in result.stderr
        assert "waits for the relay: none has been seen" in result.stderr
        with pytest.raises(NotThereYetError, match="sealed through turn 0 of 13"):
            served.wait_through("c1", user_id="maya", agent_id="companion", through="sealed", timeout_seconds=0)

    def test_an_unknown_conversation_ends_at_once(self, served: MemoryClient) -> None:
        """A slip in a name is not waited for."""
        result = self._wait("--conversation", "nowhere")

        assert result.exit_code == 1
        assert "has no conversation 'nowhere'" in result.stderr
        with pytest.raises(NotFoundError):
            served.watermarks("nowhere", user_id="maya")
