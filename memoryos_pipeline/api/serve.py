"""The API as a process: uvicorn over the parts of this process, until SIGTERM."""

import gc

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from memoryos_pipeline.api.app import create_app
from memoryos_pipeline.observability import configure_logging
from memoryos_pipeline.settings import LEDGER_POOL_OF_THE_API, Settings

MAX_HEAD_BYTES = 64 * 1024
"""Request line and headers together; a caller that sends more is cut off."""
STOP_SECONDS = 10
"""How long requests in flight may take to finish after SIGTERM."""
MAX_CONNECTIONS = 1000


class BoundedProtocol(HttpToolsProtocol):
    """Counts what arrives before the headers are complete, which the parser itself does not bound."""

    _head_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Refuse a head that grows without end, else go on as usual."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse_head()

    def on_headers_complete(self) -> None:
        """The head is over: what follows is the body, which has a bound of its own."""
        self._head_bytes = -(2**62)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The next byte begins the head of the next request."""
        self._head_bytes = 0
        super().on_message_complete()

    def _refuse_head(self) -> None:
        self.transport.write(
            b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )
        self.transport.close()


def serve(settings: Settings) -> None:
    """Serve the API until SIGTERM or SIGINT; requests in flight are answered first."""
    from memoryos_pipeline.pipeline import (  # noqa: PLC0415 - the composition root imports models
        build_ledger_database,
        build_parts,
    )

    configure_logging(settings.log_level)
    parts = build_parts(settings)
    ledger = build_ledger_database(settings, pool_size=LEDGER_POOL_OF_THE_API)
    app = create_app(parts, ledger=ledger)
    # What is loaded by now stays for good: the collector need not walk it with every batch (a tenth of its cost).
    gc.collect()
    gc.freeze()
    config = uvicorn.Config(
        app,
        host=settings.api_host,
        port=settings.api_port,
        http=BoundedProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    uvicorn.Server(config).run()
    parts.database.dispose()
    ledger.dispose()
