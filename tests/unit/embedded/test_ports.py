"""Ports are chosen so that systems never fight over them."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from memoryos_pipeline.embedded.ports import PortClaims
from memoryos_pipeline.embedded.process import EmbeddedServerError, free_port
from memoryos_pipeline.settings import Settings


@pytest.fixture
def claims() -> Iterator[list[PortClaims]]:
    """Two systems' claims."""
    with ExitStack() as stack:
        made = [PortClaims(), PortClaims()]
        for each in made:
            stack.callback(each.release)
        yield made


class TestChoose:
    def test_a_claimed_port_is_not_chosen_twice(self, claims: list[PortClaims]) -> None:
        """Between choosing a port and listening on it nobody else of ours chooses it."""
        default = free_port()
        settings = Settings.model_construct(_fields_set=set(), api_port=default)
        first, second = claims

        assert first.choose(settings, "api_port", "127.0.0.1") == default
        other = second.choose(settings, "api_port", "127.0.0.1")

        assert other not in (0, default)
        first.release()
        assert second.choose(settings, "api_port", "127.0.0.1") == default

    def test_a_taken_port_that_was_asked_for_is_an_error(self, claims: list[PortClaims]) -> None:
        """A port that was set on purpose is not exchanged behind anybody's back."""
        with socket.socket() as stranger:
            stranger.bind(("127.0.0.1", 0))
            stranger.listen()
            port = stranger.getsockname()[1]
            with pytest.raises(EmbeddedServerError, match=f"MEMORYOS_API_PORT={port} is taken"):
                claims[0].choose(Settings(api_port=port), "api_port", "127.0.0.1")
