"""Asking a process of ours whether it answers yet."""

import time
import urllib.error
import urllib.request

from memoryos_pipeline.embedded.children import Child

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Loopback is asked directly, whatever proxy the environment names."""


def answers(url: str, *, while_alive: Child, seconds: float) -> bool:
    """Wait until `url` answers 200; False when the child died or the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and while_alive.pid is not None:
        if responds(url):
            return while_alive.pid is not None
        time.sleep(0.05)
    return False


def responds(url: str) -> bool:
    """Tell whether `url` answers 200 right now."""
    try:
        with DIRECT.open(url, timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
