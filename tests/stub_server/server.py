"""The stub's HTTP side: POST /v1/messages, deterministic, counting; `mode` or a script of modes says how it behaves."""

import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.stub_server.answers import tool_input

ERRORS = {
    "rate_limited": (429, "rate_limit_error", "7"),
    "spend_limited": (402, "billing_error", None),
    "overloaded": (529, "overloaded_error", None),
    "unavailable": (503, "api_error", "3"),
    "broken": (500, "api_error", None),
    "conflict": (409, "api_error", None),
    "unauthorized": (401, "authentication_error", None),
    "forbidden": (403, "permission_error", None),
    "invalid": (400, "invalid_request_error", None),
    "too_large": (413, "request_too_large", None),
}
"""Mode: status, error type, Retry-After. Every error message quotes the request, as real ones sometimes do."""
MODES = (
    "ok", *ERRORS, "garbage", "truncated", "refused", "empty", "unknown_reason", "window_exceeded", "fenced",
    "refused_in_words", "thought_only", "two_fences", "curly_quotes", "error_text", "wrong_shape", "slow", "hang_up",
)  # fmt: skip


class StubServer:
    """`with StubServer() as stub:` serves on `stub.url`; `stub.requests` holds what was asked."""

    def __init__(self, mode: str = "ok") -> None:
        self.mode = mode
        self.script: deque[str] = deque()
        """Modes of the next calls; when it is empty `mode` holds."""
        self.answers: deque[dict[str, Any]] = deque()
        """Tool inputs to answer with instead of the built ones."""
        self.requests: list[dict[str, Any]] = []
        self.window_characters: int | None = None
        """A request with a longer message than this is too large, whatever the mode."""
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def calls(self) -> int:
        return len(self.requests)

    def next_mode(self) -> str:
        return self.script.popleft() if self.script else self.mode

    def wait_released(self) -> None:
        """Block a slow answer until the server is closed."""
        self._released.wait()

    def __enter__(self) -> "StubServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()


def _handler(stub: StubServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            stub.requests.append(request)
            mode = stub.next_mode()
            if mode == "hang_up":
                self.close_connection = True
                self.connection.close()
                return
            if mode == "slow":
                stub.wait_released()
            status, headers, body = respond(mode, request, stub)
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return

    return Handler


def respond(mode: str, request: dict[str, Any], stub: StubServer) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of the answer to a request."""
    if stub.window_characters and len(request["messages"][0]["content"]) > stub.window_characters:
        mode = "too_large"
    if mode in ERRORS:
        status, kind, retry_after = ERRORS[mode]
        headers = {"content-type": "application/json"} | ({"retry-after": retry_after} if retry_after else {})
        message = request["messages"][0]["content"]
        return status, headers, _json({"type": "error", "error": {"type": kind, "message": message}})
    if mode == "garbage":
        return 200, {"content-type": "application/json"}, b"<html>502 Bad Gateway</html>"
    answer = stub.answers.popleft() if stub.answers else tool_input(request)
    return 200, {"content-type": "application/json"}, _json(_message(mode, request, answer))


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _message(mode: str, request: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    reason, content = _outcome(mode, request, answer)
    return {
        "id": "msg_stub",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 20},
    }


def _outcome(mode: str, request: dict[str, Any], answer: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    called = [{"type": "tool_use", "id": "toolu_stub", "name": request["tool_choice"]["name"], "input": answer}]
    fenced = f"\ufeffSure! Here you go:\n```json\n{json.dumps(answer, ensure_ascii=False)}\n```\nAnything else?"
    sorry = [{"type": "text", "text": "Error: the service is temporarily unavailable, please try again later."}]
    written = json.dumps(answer, ensure_ascii=False)
    curly = written.replace('{"', "{\u201c").replace('":', "\u201d:").replace(', "', ", \u201c")
    outcomes: dict[str, tuple[str, list[dict[str, Any]]]] = {
        "truncated": ("max_tokens", called),
        "refused": ("refusal", []),
        "refused_in_words": ("refusal", [{"type": "text", "text": "I would rather not."}]),
        "thought_only": ("end_turn", [{"type": "thinking", "thinking": "Let me see.", "signature": "s"}]),
        "empty": ("end_turn", []),
        "unknown_reason": ("tired", called),
        "window_exceeded": ("model_context_window_exceeded", []),
        "fenced": ("end_turn", [{"type": "text", "text": fenced}]),
        "two_fences": ("end_turn", [{"type": "text", "text": f"```json\n{written}\n```\nor\n```json\n{{}}\n```"}]),
        "curly_quotes": ("end_turn", [{"type": "text", "text": curly}]),
        "error_text": ("end_turn", sorry),
        "wrong_shape": ("tool_use", [{**called[0], "input": {"facts": ["x"]}}]),
    }
    return outcomes.get(mode, ("tool_use", called))
