"""The HTTP client repeats what is safe to repeat, and says what went wrong with status, code and field."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from memoryos_pipeline.client import MemoryClient
from memoryos_pipeline.client.errors import (
    ApiError,
    ConflictError,
    ErasedError,
    InvalidRequestError,
    NoAnswerError,
    NotDrainedError,
    UnauthorizedError,
    UnavailableError,
    UnsendableError,
)

HANG_UP = 0


class Scripted(HTTPServer):
    """A loopback server that gives the next answer of its script, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: list[tuple[int, Any]] = []
        self.asked: list[tuple[str, Any]] = []

    def answer(self, *answers: tuple[int, Any]) -> None:
        self.script = list(answers)


class _Handler(BaseHTTPRequestHandler):
    server: Scripted

    def _handle(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.asked.append((f"{self.command} {self.path}", body))
        status, payload = self.server.script.pop(0)
        if status == HANG_UP:
            self.connection.close()
            return
        self.send_response(status)
        content = json.dumps(payload).encode()
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = _handle  # noqa: N815 - the names http.server looks for

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[Scripted]:
    made = Scripted()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def client(server: Scripted) -> Iterator[MemoryClient]:
    with MemoryClient(f"http://127.0.0.1:{server.server_port}", "mem_key", pause=lambda _: None) as made:
        yield made


def _error(code: str, field: str | None = None) -> dict[str, Any]:
    return {"error": {"code": code, "message": "because", "field": field}}


class TestAdd:
    def test_a_repeat_after_an_unknown_outcome_carries_the_same_keys(
        self, server: Scripted, client: MemoryClient
    ) -> None:
        """The connection died, the database was away: the third request is the first one again."""
        server.answer((HANG_UP, None), (503, _error("database_unavailable")), (202, {"turns": [{"seq": 1}]}))

        assert client.add("hello", user_id="maya") == [{"seq": 1}]
        first, second, third = (body["turns"][0] for _, body in server.asked)
        assert first == second == third
        assert first["client_turn_id"]

    def test_repeats_are_bounded(self, server: Scripted, client: MemoryClient) -> None:
        """Five times, then the caller hears of it."""
        server.answer(*[(503, _error("database_unavailable"))] * 9)

        with pytest.raises(UnavailableError):
            client.add("hello", user_id="maya")
        assert len(server.asked) == 5

    @pytest.mark.parametrize(
        ("status", "code", "kind"),
        [
            (422, "invalid_field", InvalidRequestError), (422, "client_turn_id_conflict", ConflictError),
            (410, "erased", ErasedError), (401, "unknown_key", UnauthorizedError), (500, "internal", UnavailableError),
        ],
    )  # fmt: skip
    def test_a_refusal_is_typed_and_not_repeated(
        self, server: Scripted, client: MemoryClient, status: int, code: str, kind: type[ApiError]
    ) -> None:
        """Status, code and field are on the error; the request was sent once."""
        server.answer((status, _error(code, "turns.0.role")))

        with pytest.raises(kind) as caught:
            client.add("hello", user_id="maya")
        assert (caught.value.status, caught.value.code, caught.value.field) == (status, code, "turns.0.role")
        assert len(server.asked) == 1

    def test_messages_become_turns_of_their_speakers(self, server: Scripted, client: MemoryClient) -> None:
        """Roles name speakers when nobody else does; what a message says of itself is kept."""
        server.answer((202, {"turns": []}))
        said = [
            {"role": "user", "content": "a", "client_turn_id": "k"},
            {"role": "assistant", "content": "b", "name": "Bot"},
        ]
        client.add(said, user_id="maya", agent_id="companion", conversation_id="c")
        first, second = server.asked[0][1]["turns"]

        assert (first["speaker"], first["client_turn_id"], second["speaker"]) == ("maya", "k", "Bot")
        assert first["occurred_at"].endswith("+00:00")

    def test_many_turns_go_in_requests_of_a_thousand(self, server: Scripted, client: MemoryClient) -> None:
        """Receipts come back in order over all requests."""
        server.answer((202, {"turns": [{"seq": 1}]}), (202, {"turns": [{"seq": 2}]}))

        assert client.add_turns([{}] * 1001) == [{"seq": 1}, {"seq": 2}]
        assert [len(body["turns"]) for _, body in server.asked] == [1000, 1]

    def test_what_is_not_json_is_not_sent(self, server: Scripted, client: MemoryClient) -> None:
        """A lone surrogate or a NaN is the caller's error, told before the network."""
        for value in ("\ud800", float("nan")):
            with pytest.raises(UnsendableError):
                client.add_turns([{"content": value}])
        assert server.asked == []


class TestRead:
    def test_rows_are_paged_until_the_cursor_ends(self, server: Scripted, client: MemoryClient) -> None:
        """The iterator follows the cursor and stops without it."""
        server.answer((200, {"pages": [{"n": 1}], "cursor": "x"}), (200, {"pages": [{"n": 2}], "cursor": None}))

        assert [row["n"] for row in client.pages(user_id="maya y")] == [1, 2]
        assert "cursor=x" in server.asked[1][0]
        assert "user_id=maya+y" in server.asked[0][0] or "user_id=maya%20y" in server.asked[0][0]

    def test_an_answer_is_never_asked_twice(self, server: Scripted, client: MemoryClient) -> None:
        """It records turns, so an unknown outcome is the caller's to judge."""
        server.answer((HANG_UP, None), (200, {}))

        with pytest.raises(NoAnswerError):
            client.answer("what?", user_id="maya")
        assert len(server.asked) == 1

    def test_waiting_ends_when_nothing_is_owed(self, server: Scripted, client: MemoryClient) -> None:
        """It polls the status; when time is over it says how much is left."""
        server.answer((200, {"owed": 2}), (200, {"owed": 0}))
        assert client.wait() == {"owed": 0}

        server.answer((200, {"owed": 7}))
        with pytest.raises(NotDrainedError, match="7"):
            client.wait(timeout_seconds=0)
