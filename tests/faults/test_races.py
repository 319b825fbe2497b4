"""Everything at once on a few memories: recording, stages, sweeps, forgetting, restoring, erasing, as chance has it."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from memoryos_pipeline.domain.errors import ErasedScopeError, NotFoundError
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.domain.turn_body import hash_turn, parse_turn
from memoryos_pipeline.faults.journal import name_of
from memoryos_pipeline.faults.load import LANGUAGES, START, conversation
from memoryos_pipeline.faults.members import wait_until
from memoryos_pipeline.readmodels.fault_figures import find_doubled
from memoryos_pipeline.readmodels.invariants import JournalEntry, compare_journal, find_violations
from memoryos_pipeline.stages.erase_user import erase_user
from memoryos_pipeline.stages.record_turns import record_turns
from memoryos_pipeline.stages.restore import restore_knowledge
from memoryos_pipeline.store.sweeps import owe_due
from tests.builders import rows, set_clock, tables_with
from tests.conftest import Stack
from tests.faults.crew import Crew, fresh_seed, hired

KEPT = ("keep-1", "keep-2", "keep-3")
ERASED = ("gone-1", "gone-2", "gone-3")
CANARY = "kanariya-{user}"
POLICY = replace(DEFAULT, forget_brake_share=1.0, strength_days=6.0, heat_half_life_days=2.0, min_warm_age_hours=1.0)
"""Quick to forget, and with no brake: otherwise a sweep that is due for everything takes nothing."""
TURNS = 40
BATCH = 4
DAYS = 80
STEP_DAYS = 4
ROWS_A_STEP = 15
STEP_SECONDS = 2.0
DRAIN_SECONDS = 150.0

FORGOTTEN = "select knowledge_id from memoryos.knowledge where status = 'forgotten'"
DEAD = "select kind, last_error_class from memoryos.work where state = 'dead'"
EFFECTS = """
    select kind, count(*) from memoryos.event
     where kind in ('page_distilled', 'knowledge_added', 'knowledge_forgotten', 'knowledge_restored')
     group by kind
"""


class Storm:
    """What callers, sweeps and the clock do while a crew works."""

    def __init__(self, crew: Crew, seed: int) -> None:
        self.crew, self.stack = crew, crew.stack
        self._seed = seed
        self._day = 0
        self.recorded: list[JournalEntry] = []

    def rage(self) -> None:
        """Do everything at once until the last day is over; what goes wrong in one of them is raised."""
        acts: list[Callable[[random.Random], None]] = [self._age, self._sweep, self._restore, self._erase]
        acts += [self._write] * 3
        with ThreadPoolExecutor(len(acts)) as threads:
            doing = [threads.submit(act, random.Random(f"{self._seed} {n}")) for n, act in enumerate(acts)]
        for each in doing:
            each.result()

    def _age(self, _: random.Random) -> None:
        """Let days pass as work gets done; whatever happens, the last day comes."""
        try:
            while self._day < DAYS:
                set_clock(self.stack, START + timedelta(days=self._day))
                owe_due(self.crew.database, policy=POLICY)
                enough = self.crew.count_done() + ROWS_A_STEP
                wait_until(lambda enough=enough: self.crew.count_done() >= enough, seconds=STEP_SECONDS)
                self._day += STEP_DAYS
        finally:
            self._day = DAYS

    def _write(self, chance: random.Random) -> None:
        """Tell every memory its story, in an order of chance; some of it is told by others too, some twice."""
        batches = [batch for user in (*KEPT, *ERASED) for batch in _batches(user)]
        chance.shuffle(batches)
        for n, batch in enumerate(batches):
            wait_until(lambda n=n: self._day >= DAYS * n / len(batches) / 2, seconds=STEP_SECONDS)
            with suppress(ErasedScopeError):
                self._record(batch)

    def _record(self, batch: list[dict[str, Any]]) -> None:
        told, tenant_id = [parse_turn(body) for body in batch], self.stack.tenant_id
        receipts = record_turns(self.crew.parts.database, tenant_id, told, policy=POLICY, max_attempts=5)
        if batch[0]["user_id"] in KEPT:
            self.recorded += [
                JournalEntry(*name_of(body), seq=receipt.seq, body_sha256=hash_turn(turn))
                for body, turn, receipt in zip(batch, told, receipts, strict=True)
            ]

    def _sweep(self, _: random.Random) -> None:
        while self._day < DAYS:
            owe_due(self.crew.database, policy=POLICY)

    def _restore(self, chance: random.Random) -> None:
        while self._day < DAYS:
            forgotten = rows(self.stack, FORGOTTEN)
            with suppress(NotFoundError):
                if forgotten:
                    restore_knowledge(self.crew.parts, self.stack.tenant_id, chance.choice(forgotten)[0])

    def _erase(self, chance: random.Random) -> None:
        days = sorted(chance.choices(range(DAYS // 8, DAYS), k=len(ERASED)))
        for user, day in zip(ERASED, days, strict=True):
            wait_until(lambda day=day: self._day >= day, seconds=DRAIN_SECONDS)
            self._record([_last_word(user)])
            erase_user(self.stack.app, self.stack.tenant_id, user)


def _batches(user: str) -> list[list[dict[str, Any]]]:
    """Return one story told in two conversations, so that what they give has to be merged."""
    lang = LANGUAGES[len(user) % len(LANGUAGES)] if user in ERASED else LANGUAGES[KEPT.index(user)]
    told = [turn for name in ("one", "two") for turn in conversation(TURNS, user=user, lang=lang, name=name)]
    marked = [{**turn, "content": f"{turn['content']} {CANARY.format(user=user)}"} for turn in told]
    return [marked[start : start + BATCH] for start in range(0, len(marked), BATCH)]


def _last_word(user: str) -> dict[str, Any]:
    return {**_batches(user)[0][0], "client_turn_id": "last", "content": f"forget me {CANARY.format(user=user)}"}


@pytest.mark.slow
class TestRaces:
    def test_nobody_steps_on_anybody(self, stack: Stack) -> None:
        """Kept memories hold every turn and no effect twice, erased ones are in no table; no invariant is broken."""
        seed = fresh_seed()
        set_clock(stack, START)
        with hired(stack, seed=seed, policy=POLICY) as crew:
            storm = Storm(crew, seed)
            crew.drain(seconds=DRAIN_SECONDS, meanwhile=storm.rage)
            while owe_due(crew.database, policy=POLICY):
                crew.drain(seconds=DRAIN_SECONDS)

        effects = dict(rows(stack, EFFECTS))
        assert len(effects) == 4, effects
        assert crew.failed_deliveries == 0
        assert rows(stack, DEAD) == []
        assert [tables_with(stack, CANARY.format(user=user)) for user in ERASED] == [[], [], []]
        with stack.app.transaction(stack.tenant_id) as connection:
            compared = compare_journal(connection, stack.tenant_id, storm.recorded)
            assert (compared.lost, compared.doubled, compared.unexpected) == ((), (), ())
            assert find_violations(connection, stack.tenant_id, at_rest=True) == []
            assert [
                each for each in find_doubled(connection, stack.tenant_id) if each[0] != "knowledge_forgotten"
            ] == []
