"""The two loads of `bench ingest`, each in a process of its own: raw HTTP/1.1, and the same SQL statements."""

import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
from sqlalchemy import TextClause
from sqlalchemy.dialects.postgresql import psycopg as psycopg_dialect

from memoryos_pipeline.domain import ids
from memoryos_pipeline.domain.language import detect_language
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.domain.turn_body import canonical_turn, hash_canonical, parse_turn
from memoryos_pipeline.domain.turns import NewTurn
from memoryos_pipeline.sample import sample_turns
from memoryos_pipeline.store.database import SET_TENANT
from memoryos_pipeline.store.ledger import OWE
from memoryos_pipeline.store.turns import (
    INSERT_TURNS,
    OPEN_CONVERSATIONS,
    ConversationShare,
    TurnRow,
    share_values,
    turn_values,
)

CONNECTIONS = 16
TURNS_PER_CONVERSATION = 20
MOMENT = "2026-05-04T18:02:00+09:00"
"""Said at one time, so that only the thirteenth turn, and no silence, owes work."""
PREPARED_PER_SECOND = {1: 400, 100: 15}
"""Requests made ready per connection and second, by turns a request: more than are ever sent."""

Send = Callable[[Any], None]


@dataclass(frozen=True)
class Load:
    """One run: who, how much at a time, how long. `target` is a URL of the API or of the database."""

    name: str
    turns_per_request: int
    seconds: float
    target: str
    tenant_id: UUID
    api_key: str


@dataclass(frozen=True)
class Measured:
    """What a run showed: turns a second over all connections, and the milliseconds a request took."""

    turns_per_second: float
    p50_ms: float
    p99_ms: float


def run_http(load: Load) -> Measured:
    """Send turns over kept connections, one request at a time on each."""
    address = urlsplit(load.target)
    assert address.hostname  # noqa: S101 - a URL we made
    host, port = address.hostname, address.port or 80

    def connect() -> tuple[Send, Callable[[], None]]:
        connection = _HttpConnection(host, port)
        return connection.send, connection.close

    return _run(load, connect, lambda bodies: _request(load, bodies))


def run_sql(load: Load) -> Measured:
    """Run the statements of the same turns over open connections."""

    def connect() -> tuple[Send, Callable[[], None]]:
        connection = psycopg.connect(load.target)
        return _SqlSender(connection, load.tenant_id).send, connection.close

    return _run(load, connect, lambda bodies: _SqlRequest.of(load.tenant_id, bodies))


def _run(
    load: Load, connect: Callable[[], tuple[Send, Callable[[], None]]], prepare: Callable[[list[dict[str, Any]]], Any]
) -> Measured:
    count = int(PREPARED_PER_SECOND[load.turns_per_request] * load.seconds) + 20
    work = [[prepare(bodies) for bodies in _requests(load, number, count)] for number in range(CONNECTIONS)]
    begin, times = threading.Barrier(CONNECTIONS + 1), [list[float]() for _ in range(CONNECTIONS)]
    sides = [connect() for _ in range(CONNECTIONS)]

    def drive(number: int) -> None:
        send, close = sides[number]
        begin.wait()
        deadline = time.perf_counter() + load.seconds
        for request in work[number]:
            started = time.perf_counter()
            if started >= deadline:
                break
            send(request)
            times[number].append(time.perf_counter() - started)
        close()

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        ended = [pool.submit(drive, number) for number in range(CONNECTIONS)]
        begin.wait()
        started = time.perf_counter()
        for driven in ended:
            driven.result()
    return _measured(load, sorted(chain.from_iterable(times)), time.perf_counter() - started)


def _measured(load: Load, durations: Sequence[float], seconds: float) -> Measured:
    if not durations:
        raise RuntimeError("no request was answered")
    return Measured(
        turns_per_second=len(durations) * load.turns_per_request / seconds,
        p50_ms=durations[len(durations) // 2] * 1000,
        p99_ms=durations[int(len(durations) * 0.99)] * 1000,
    )


def _requests(load: Load, connection: int, count: int) -> list[list[dict[str, Any]]]:
    """Return the turn bodies of each request of one connection: sentences of the sample, in all its languages."""
    sample = sample_turns()
    per_conversation = max(1, TURNS_PER_CONVERSATION // load.turns_per_request)
    return [
        [
            {
                **sample[(request * load.turns_per_request + place) % len(sample)],
                "user_id": f"{load.name}-{connection}",
                "conversation_id": f"{load.name}-{connection}-{request // per_conversation}",
                "client_turn_id": f"{request}-{place}",
                "occurred_at": MOMENT,
            }
            for place in range(load.turns_per_request)
        ]
        for request in range(count)
    ]


def _request(load: Load, bodies: list[dict[str, Any]]) -> bytes:
    body = json.dumps(bodies[0] if len(bodies) == 1 else {"turns": bodies}, ensure_ascii=False).encode()
    head = (
        f"POST /v1/turns HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {load.api_key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class _HttpConnection:
    """One kept connection, without an HTTP library between it and the measurement."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.close = self._socket.close

    def send(self, request: bytes) -> None:
        """Send a request and read its whole answer. Raises RuntimeError when it is not 202."""
        self._socket.sendall(request)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._receive()
        head, _, body = received.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if not head.startswith(b"HTTP/1.1 202"):
            raise RuntimeError(head.decode("latin-1"))
        missing = length - len(body)
        while missing > 0:
            missing -= len(self._receive())

    def _receive(self) -> bytes:
        data = self._socket.recv(65536)
        if not data:
            raise RuntimeError("the API closed the connection")
        return data


@dataclass(frozen=True)
class _SqlRequest:
    """The parameters of one request's statements, ready but for the numbers the database gives."""

    share: ConversationShare
    rows: list[TurnRow]
    opening: dict[str, Any]

    @classmethod
    def of(cls, tenant_id: UUID, bodies: list[dict[str, Any]]) -> "_SqlRequest":
        """Do beforehand what the API does between a request and its first statement."""
        turns = [parse_turn(body) for body in bodies]
        first = turns[0]
        scope = ids.scope_id(tenant_id, first.user_id, first.agent_id)
        conversation = ids.conversation_id(scope, first.conversation_id)
        rows = [_row(turn, conversation, scope) for turn in turns]
        share = ConversationShare(
            conversation_id=conversation, scope_id=scope, external_id=first.conversation_id, user_id=first.user_id,
            agent_id=first.agent_id, turns=len(rows), last_turn_at=max(turn.occurred_at for turn in turns),
            tail_turn_at=turns[-1].occurred_at,
        )  # fmt: skip
        return cls(share, rows, share_values(tenant_id, [share]))


def _row(turn: NewTurn, conversation: UUID, scope: UUID) -> TurnRow:
    canonical = canonical_turn(turn)
    return TurnRow(
        conversation=str(conversation),
        seq=0,
        turn_id=ids.turn_key(str(conversation), turn.client_turn_id),
        scope=str(scope),
        sha256=hash_canonical(canonical),
        lang=detect_language(turn.content),
        utc_offset_minutes=(turn.occurred_at.utcoffset() or timedelta()) // timedelta(minutes=1),
        canonical=canonical,
    )


class _SqlSender:
    """The statements of one request on one open connection: no pool, no framework."""

    def __init__(self, connection: psycopg.Connection[Any], tenant_id: UUID) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self._set_tenant, self._open, self._insert, self._owe = map(
            _driver_text, (SET_TENANT, OPEN_CONVERSATIONS, INSERT_TURNS, OWE)
        )

    def send(self, request: _SqlRequest) -> None:
        """Run one transaction."""
        execute, share = self._connection.execute, request.share
        execute(self._set_tenant, {"tenant_id": str(self._tenant_id)})
        _, next_seq, sealed_through, *_ = execute(self._open, request.opening).fetchall()[0]
        rows = [row._replace(seq=seq) for seq, row in enumerate(request.rows, start=next_seq - share.turns)]
        values = turn_values(self._tenant_id, rows, users=[share.user_id])
        if execute(self._insert, values).fetchall()[0][0] != share.turns:
            raise RuntimeError("a turn was there already")
        if next_seq - 1 - sealed_through > DEFAULT.hot_capacity_turns:
            execute(self._owe, self._owed(share))
        self._connection.commit()

    def _owed(self, share: ConversationShare) -> dict[str, Any]:
        return {
            "tenant_id": self._tenant_id, "max_attempts": 5, "kinds": ["advance"], "delays": [0.0],
            "subjects": [str(share.conversation_id)], "scopes": [share.scope_id],
        }  # fmt: skip


def _driver_text(statement: TextClause) -> bytes:
    compiled = statement.compile(dialect=psycopg_dialect.dialect())  # type: ignore[no-untyped-call]
    return str(compiled).encode()
