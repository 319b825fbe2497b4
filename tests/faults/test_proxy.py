"""The proxy is a fault injector: each of its faults is what it says, and it is honest without any."""

import contextlib
import socket
import socketserver
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from tests.conftest import Stack
from tests.faults.proxy import FaultyProxy

WAIT_SECONDS = 10.0


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(ConnectionResetError):
            while data := self.request.recv(65536):
                self.request.sendall(data)


@pytest.fixture
def echo() -> Iterator[int]:
    """A server on loopback that says what it is told; its port."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Echo) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def _connect(proxy: FaultyProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=WAIT_SECONDS)


def _ask(connection: socket.socket, said: bytes) -> bytes:
    connection.sendall(said)
    heard = b""
    while len(heard) < len(said) and (data := connection.recv(65536)):
        heard += data
    return heard


def _count(stack: Stack) -> int:
    with psycopg.connect(stack.url("owner")) as connection:
        (count,) = connection.execute("select count(*) from said").fetchone() or (0,)
    return int(count)


def _say(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    connection.execute("insert into said values (1)")
    connection.commit()


class TestProxy:
    def test_without_a_fault_it_passes_everything_on(self, echo: int) -> None:
        """A megabyte comes back byte for byte, and the end of the client ends the connection."""
        said = bytes(range(256)) * 4096
        with FaultyProxy(echo) as proxy, _connect(proxy) as connection:
            heard = b""
            sender = threading.Thread(target=connection.sendall, args=[said])
            sender.start()
            while len(heard) < len(said):
                heard += connection.recv(65536)
            sender.join()
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""

        assert heard == said

    def test_latency_is_paid_each_way(self, echo: int) -> None:
        """An answer takes at least twice the latency."""
        with FaultyProxy(echo) as proxy, _connect(proxy) as connection:
            proxy.latency_seconds = 0.05
            begun = time.monotonic()
            assert _ask(connection, b"hello") == b"hello"

            assert time.monotonic() - begun >= 0.1

    def test_a_reset_ends_the_connection(self, echo: int) -> None:
        """With a share of one the next chunk is answered by a reset; a new connection is as good as before."""
        with FaultyProxy(echo) as proxy:
            with _connect(proxy) as connection:
                assert _ask(connection, b"one") == b"one"
                proxy.reset_share = 1.0
                with pytest.raises(ConnectionResetError):
                    _ask(connection, b"two")
            proxy.reset_share = 0.0
            with _connect(proxy) as connection:
                assert _ask(connection, b"three") == b"three"

    def test_every_connection_can_be_reset_at_once(self, echo: int) -> None:
        """Nobody who was connected is spared."""
        with FaultyProxy(echo) as proxy, _connect(proxy) as one, _connect(proxy) as other:
            assert (_ask(one, b"1"), _ask(other, b"2")) == (b"1", b"2")
            proxy.reset_all()
            for connection in (one, other):
                with pytest.raises(ConnectionResetError):
                    connection.recv(1)

    def test_a_half_open_connection_stands_and_is_silent(self, echo: int) -> None:
        """It takes what it is given and never answers; who comes anew is served."""
        with FaultyProxy(echo) as proxy, _connect(proxy) as old:
            assert _ask(old, b"before") == b"before"
            proxy.half_open()
            with _connect(proxy) as new:
                assert _ask(new, b"new") == b"new"
            old.settimeout(0.2)
            with pytest.raises(TimeoutError):
                _ask(old, b"anybody there?")

    def test_a_target_that_is_away_refuses(self, echo: int) -> None:
        """A client of a dead target is told so by the end of its connection."""
        with FaultyProxy(echo) as proxy:
            proxy.refuses = True
            with _connect(proxy) as connection, pytest.raises(ConnectionResetError):
                connection.recv(1)


class TestDroppedReply:
    @pytest.fixture
    def said(self, stack: Stack) -> Stack:
        """A database with one table to write to."""
        with psycopg.connect(stack.url("owner")) as connection:
            connection.execute("create table said (word integer)")
        return stack

    def _url(self, stack: Stack, proxy: FaultyProxy) -> str:
        return stack.url("owner").replace(f":{stack.server.port}/", f":{proxy.port}/")

    def test_the_commit_is_kept_and_its_reply_is_not(self, said: Stack) -> None:
        """The client hears of a broken connection; the row is there."""
        with FaultyProxy(said.server.port) as proxy:
            connection = psycopg.connect(self._url(said, proxy))
            proxy.drop_replies()
            with pytest.raises(psycopg.OperationalError):
                _say(connection)
            assert (_count(said), proxy.dropped) == (1, 1)
            with psycopg.connect(self._url(said, proxy)) as again:
                _say(again)

        assert (_count(said), proxy.dropped) == (2, 1)

    def test_only_the_transaction_that_is_meant_is_struck(self, said: Stack) -> None:
        """A reply is dropped after a transaction that said the word, not after one before it on the same connection."""
        with FaultyProxy(said.server.port) as proxy:
            connection = psycopg.connect(self._url(said, proxy))
            proxy.drop_replies(after=b"insert into said")
            connection.execute("select 'insert'")
            connection.commit()
            assert proxy.dropped == 0
            with pytest.raises(psycopg.OperationalError):
                _say(connection)

        assert (_count(said), proxy.dropped) == (1, 1)
