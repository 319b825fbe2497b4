"""Three schedulers ring thrice and nothing runs twice; none is noticed; a clock that jumps takes nothing."""

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from memoryos_pipeline.faults.checking import check
from memoryos_pipeline.faults.cluster import Cluster
from memoryos_pipeline.faults.journal import ClientJournal
from memoryos_pipeline.faults.load import LANGUAGES, START, HttpWriter, Turn, conversation
from memoryos_pipeline.store.clock import freeze_clock
from memoryos_pipeline.store.sweeps import SWEEPS
from memoryos_pipeline.store.vigilance import list_alarms

BEATS = 3
ROUNDS = 4
WAIT_SECONDS = 60.0
DRAIN_SECONDS = 180.0
SWEPT = text("select name, count(*) from memoryos.periodic_run where owed is not null group by name")
CLOSED_SINCE = text("""
    select count(distinct name) from memoryos.periodic_run
     where started_at > clock_timestamp() - interval '1 second' * :seconds and owed is not null and name = any(:names)
""")
FLUSHED = text("select kind, generation, executions from memoryos.work where kind = 'advance'")
KNOWLEDGE = text("select status, count(*) from memoryos.knowledge where tenant_id = :tenant_id group by status")
SCOPES = text("""
    select s.user_id, count(*) filter (where k.status = 'active') from memoryos.scope s
      join memoryos.knowledge k using (tenant_id, scope_id) where tenant_id = :tenant_id group by s.user_id
""")
BRAKED = text("select count(*) from memoryos.event where tenant_id = :tenant_id and kind = 'forget_braked'")
TICKING = "memoryos.sweep["
THINGS = (
    "fruit", "tea", "bird", "tree", "river", "colour", "season", "novel", "film", "song", "sport", "game", "flower",
    "dessert", "soup", "bread", "cheese", "planet", "instrument", "painter", "poet", "city", "island", "lake", "train",
    "museum", "holiday", "vegetable", "spice", "fish", "sauce", "jacket", "shoe", "lamp", "chair", "pen",
)  # fmt: skip


@pytest.fixture(scope="module")
def system(cluster: Cluster) -> Iterator[Cluster]:
    """An API, a relay, a worker and three beats; recorded time is held at the beginning."""
    _hold(cluster, START)
    cluster.add_api().start().ready()
    cluster.add_relay().start()
    cluster.add_worker("worker").start().ready()
    for number in range(BEATS):
        cluster.add_beat(f"beat-{number}").start()
    yield cluster
    _hold(cluster, None)


def _hold(cluster: Cluster, moment: datetime | None) -> None:
    with cluster.owner.across_tenants() as connection:
        freeze_clock(connection, moment)


def _read(cluster: Cluster, query: Any, **values: Any) -> list[tuple[Any, ...]]:
    with cluster.app.transaction(cluster.tenant_id) as connection:
        return [tuple(row) for row in connection.execute(query, {"tenant_id": cluster.tenant_id, **values})]


def _count_slots(cluster: Cluster) -> dict[str, int]:
    with cluster.ledger.across_tenants() as connection:
        return {name: n for name, n in connection.execute(SWEPT) if name in SWEEPS}


def _wait_for_rounds(cluster: Cluster, rounds: int) -> None:
    """Return once every sweep has run so many times more, and nothing is owed."""
    before = _count_slots(cluster)

    def all_ran() -> bool:
        now = _count_slots(cluster)
        return all(now.get(name, 0) >= before.get(name, 0) + rounds for name in SWEEPS)

    assert cluster.wait_until(all_ran, seconds=WAIT_SECONDS)
    cluster.drain(DRAIN_SECONDS)


def _is_silent(cluster: Cluster) -> bool:
    with cluster.ledger.across_tenants() as connection:
        return "beat_silent" in {alarm.name for alarm in list_alarms(connection)}


def _say(cluster: Cluster, journal: ClientJournal, turns: int, name: str) -> None:
    with closing(HttpWriter(cluster, journal)) as writer:
        for lang in LANGUAGES:
            assert writer.send(conversation(turns, user=f"{name}-{lang}", lang=lang, name=name))


def _favourites() -> list[Turn]:
    """Return a conversation in which somebody names one favourite of each of many things."""
    told = conversation(len(THINGS), user="fan", name="favourites")
    return [
        {**turn, "role": "user", "speaker": "Maya", "content": f"My favourite {thing} is number {n}."}
        for n, (turn, thing) in enumerate(zip(told, THINGS, strict=True))
    ]


@pytest.mark.slow
class TestBeats:
    def test_three_run_every_slot_once(self, system: Cluster, journal: ClientJournal) -> None:
        """Far more rings than slots are heard; what falls due is woken once, and done once."""
        _say(system, journal, 3, "short")
        _hold(system, START + timedelta(hours=1))
        _wait_for_rounds(system, ROUNDS)

        slots = sum(_count_slots(system).values())
        assert system.members["worker"].written().count(TICKING) > slots
        assert _read(system, FLUSHED) == [("advance", 1, 1)] * len(LANGUAGES)

    def test_silence_is_an_alarm(self, system: Cluster) -> None:
        """With every beat dead an alarm says so; with one of them alive again it goes."""
        for number in range(BEATS):
            system.members[f"beat-{number}"].kill(for_good=True)
        assert system.wait_until(lambda: _is_silent(system), seconds=WAIT_SECONDS)
        system.members["beat-0"].start()

        assert system.wait_until(lambda: not _is_silent(system), seconds=WAIT_SECONDS)

    def test_a_jump_of_the_clock_takes_nothing(self, system: Cluster, journal: ClientJournal) -> None:
        """Ten years forward: memories of some size are braked and nothing is purged; back again all is as it was."""
        with closing(HttpWriter(system, journal)) as writer:
            assert writer.send(_favourites())
        _hold(system, START + timedelta(days=1))
        _wait_for_rounds(system, 2)
        _hold(system, START + timedelta(days=40))
        _wait_for_rounds(system, 2)
        before = {user: n for user, n in _read(system, SCOPES) if n > 20}
        rows = sum(n for _, n in _read(system, KNOWLEDGE))
        _hold(system, START + timedelta(days=3650))
        _wait_for_rounds(system, 3)
        _hold(system, START + timedelta(days=41))
        _wait_for_rounds(system, 2)

        assert before
        assert {user: n for user, n in _read(system, SCOPES) if user in before} == before
        assert sum(n for _, n in _read(system, KNOWLEDGE)) == rows
        assert _read(system, BRAKED)[0][0] >= len(before)
        assert check(system, journal.path).wrongs() == {}
