"""`memoryos up`: for root and for others, two at once, and nothing left whatever ends it."""

import signal
from pathlib import Path

import psutil

from memoryos_pipeline.client.http import MemoryClient
from memoryos_pipeline.embedded.directory import Connection
from tests.acceptance.running import (
    STOP_SECONDS,
    System,
    alive,
    ordinary_user,
    place_for,
    up,
    wait_until,
)

TURN = {
    "user_id": "maya",
    "agent_id": "companion",
    "conversation_id": "one",
    "client_turn_id": "first",
    "role": "user",
    "content": "Tuning the old piano took all day.",
    "occurred_at": "2026-05-04T18:02:00-05:00",
}


def _publish(connection: Connection) -> None:
    with MemoryClient(connection.api_url, connection.api_key) as client:
        client.add_turns([TURN])


def _remembered(connection: Connection) -> list[str]:
    with MemoryClient(connection.api_url, connection.api_key) as client:
        return [turn["client_turn_id"] for turn in client.turns(user_id="maya")]


def _running(system: System, word: str) -> psutil.Process | None:
    return next((each for each in system.family() if word in each.cmdline()), None)


def _mode(path: Path) -> int:
    return path.stat().st_mode


class TestUp:
    def test_it_serves_and_leaves_nothing_and_continues(self) -> None:
        """As we are: turns are kept from one run to the next, and Ctrl-C ends every process within 15 s."""
        with place_for(None) as place:
            modes = [_mode(folder) for folder in (place, *place.parents)]
            with up(place) as system:
                first = system.wait_until_up()
                _publish(first)
                family = system.family()
                seconds = system.stop(signal.SIGINT)

                assert system.process.returncode == 0, system.log.read_text()
                assert seconds < STOP_SECONDS
                assert alive(family) == []
                assert system.directory.read_connection() is None
            with up(place) as again:
                second = again.wait_until_up()

                assert second.api_key == first.api_key
                assert _remembered(second) == ["first"]
                with up(place) as rival:
                    assert rival.process.wait(30) == 1
                    assert "is using the data directory" in " ".join(rival.log.read_text().split())
            assert [_mode(folder) for folder in (place, *place.parents)] == modes

    def test_two_run_at_once_one_of_them_for_an_ordinary_user(self) -> None:
        """Two systems share no port; a killed child comes back; even kill -9 of the supervisor leaves no process."""
        user = ordinary_user()
        with place_for(None) as ours, place_for(user) as theirs, up(ours) as one, up(theirs, user) as other:
            here, there = one.wait_until_up(), other.wait_until_up()
            assert len({here.api_url, there.api_url, here.flower_url, there.flower_url}) == 4
            _publish(here)
            assert (_remembered(here), _remembered(there)) == (["first"], [])

            relay = _running(one, "relay")
            assert relay is not None
            relay.kill()
            assert wait_until(lambda: _running(one, "relay") not in (None, relay), seconds=10)

            family = other.family()
            other.process.kill()
            other.process.wait()
            assert wait_until(lambda: alive(family) == [], seconds=STOP_SECONDS), alive(family)
