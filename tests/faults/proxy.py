"""A TCP proxy that misbehaves on request: late, cut, silent, or taking a reply away after its request went through."""

import asyncio
import contextlib
import random
import socket
import struct
import threading
from asyncio import StreamReader, StreamWriter
from dataclasses import dataclass, field

COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"
"""How a client of Postgres ends a transaction: one simple query."""
CHUNK_BYTES = 65536
LONGEST_TRANSACTION_BYTES = 1 << 20
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER that makes the end of a connection a reset instead of a goodbye."""


@dataclass
class DroppedReply:
    """Which replies are taken away: those to a COMMIT of a transaction that sent `after`, so many times at most."""

    share: float
    times: int
    after: bytes = b""


@dataclass(eq=False)
class _Link:
    """One client and its connection to the target."""

    client: StreamWriter
    target: StreamWriter
    is_dead: bool = False
    swallows: bool = False
    sent: bytearray = field(default_factory=bytearray)

    def reset(self) -> None:
        for end in (self.client, self.target):
            made: socket.socket = end.transport.get_extra_info("socket")
            with contextlib.suppress(OSError):
                made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            end.transport.abort()


class FaultyProxy:
    """`with FaultyProxy(port) as proxy:` listens on `proxy.port` of loopback; its attributes may change at any time."""

    def __init__(self, target_port: int, *, seed: int = 0) -> None:
        self.target_port = target_port
        self.latency_seconds = 0.0
        """What every chunk waits, either way."""
        self.reset_share = 0.0
        """The chance of every chunk to end its connection."""
        self.refuses = False
        """Whether a new connection is reset at once."""
        self.dropped = 0
        """How many replies were taken away."""
        self.port = 0
        self._dropping: DroppedReply | None = None
        self._chance = random.Random(seed)
        self._links: set[_Link] = set()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="proxy")

    def drop_replies(self, *, share: float = 1.0, times: int = 1, after: bytes = b"") -> None:
        """Forward a COMMIT, wait until the server has answered it, then reset the client instead of telling it."""
        self._dropping = DroppedReply(share, times, after)

    def reset_all(self) -> None:
        """End every connection there is."""
        self._loop.call_soon_threadsafe(lambda: [link.reset() for link in self._links])

    def half_open(self) -> None:
        """Let every connection there is stand for ever without a word; new ones are served."""
        self._loop.call_soon_threadsafe(lambda: [setattr(link, "is_dead", True) for link in self._links])

    def __enter__(self) -> "FaultyProxy":
        self._thread.start()
        assert self._listening.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        await self._stopped.wait()
        server.close()
        for link in self._links:
            link.reset()
        await server.wait_closed()

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            answers, target = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(writer, target)
        self._links.add(link)
        if self.refuses:
            link.reset()
        try:
            await asyncio.gather(self._pump(link, reader, to=target), self._pump(link, answers, to=writer))
        except OSError:
            link.reset()
        finally:
            self._links.discard(link)
            for end in (writer, target):
                end.close()

    async def _pump(self, link: _Link, source: StreamReader, *, to: StreamWriter) -> None:
        while data := await source.read(CHUNK_BYTES):
            await asyncio.sleep(self.latency_seconds)
            if link.is_dead:
                continue
            if self._chance.random() < self.reset_share or (link.swallows and to is link.client):
                self.dropped += link.swallows
                link.reset()
                return
            if to is link.target:
                self._note(link, data)
            to.write(data)
            await to.drain()
        if link.is_dead:
            await asyncio.Event().wait()
        if to.can_write_eof():
            to.write_eof()

    def _note(self, link: _Link, data: bytes) -> None:
        """Remember what a transaction sends, and decide at its COMMIT whether the reply may come through."""
        link.sent += data
        if not link.sent.endswith(COMMIT):
            del link.sent[:-LONGEST_TRANSACTION_BYTES]
            return
        dropping = self._dropping
        if dropping and dropping.times > 0 and dropping.after in link.sent and self._chance.random() < dropping.share:
            dropping.times -= 1
            link.swallows = True
        link.sent.clear()
