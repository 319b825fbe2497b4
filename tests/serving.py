"""An API over a stack on a port of its own, for commands that reach it by HTTP."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from memoryos_pipeline.api.app import create_app
from memoryos_pipeline.embedded.process import free_port
from memoryos_pipeline.stages.parts import Parts


@contextmanager
def serving(parts: Parts) -> Iterator[str]:
    """Serve the API in this process and yield its URL."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(create_app(parts), port=port, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:  # or a test that fails would never end
        server.should_exit = True
        thread.join()
