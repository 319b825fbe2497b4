"""Choosing where to listen, so that two systems started at the same moment never choose the same."""

import socket
from contextlib import ExitStack

from memoryos_pipeline.embedded.process import EmbeddedServerError, free_port
from memoryos_pipeline.settings import Settings

TRIES = 20


class PortClaims:
    """Ports this process will let its children listen on. A claim ends with the process, however that ends."""

    def __init__(self) -> None:
        self._held = ExitStack()

    def choose(self, settings: Settings, name: str, host: str) -> int:
        """Return the port asked for, or any free one when that is a default which is taken, or 0.

        Raises EmbeddedServerError when a port that was set on purpose is taken.
        """
        wanted: int = getattr(settings, name)
        if wanted and self._claim(host, wanted):
            return wanted
        if wanted and name in settings.model_fields_set:
            variable = f"MEMORYOS_{name.upper()}"
            raise EmbeddedServerError(f"{variable}={wanted} is taken; set another, or 0 for any free port")
        for _ in range(TRIES):
            port = free_port()
            if self._claim(host, port):
                return port
        raise EmbeddedServerError("no free port was found")

    def release(self) -> None:
        """Give every claim back."""
        self._held.close()

    def _claim(self, host: str, port: int) -> bool:
        # A name without a file: the kernel keeps it exclusive on this machine and frees it with the process.
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0memoryos-port-{port}")
        except OSError:
            claim.close()
            return False
        self._held.enter_context(claim)
        return port_is_free(host, port)


def port_is_free(host: str, port: int) -> bool:
    """Tell whether a server could listen there right now."""
    return listening_trouble(host, port) is None


def listening_trouble(host: str, port: int) -> str | None:
    """Return why no server can listen there right now, None when one can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.strerror or str(error)
        return None
