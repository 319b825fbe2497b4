"""People's hands and the pipeline's on one memory at once: nobody hears of a deadlock, nothing is broken after."""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from memoryos_pipeline.domain.errors import FencedError, NotFoundError, StaleReadError
from memoryos_pipeline.domain.ids import mint_id, scope_id
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.undoing import CannotUndoError
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.pipeline import STAGES
from memoryos_pipeline.readmodels.invariants import find_violations
from memoryos_pipeline.stages.pin import pin_knowledge
from memoryos_pipeline.stages.record_access import record_access
from memoryos_pipeline.stages.restore import restore_knowledge
from memoryos_pipeline.stages.undo_verdict import undo_verdict
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.ledger import Ledger
from tests.builders import rows
from tests.conftest import Stack
from tests.integration.stages.cold import Cold

PAGES, TRIES = 16, 8
WORK = (WorkKind.DISTILL, WorkKind.MERGE, WorkKind.HEAT, WorkKind.FORGET, WorkKind.EMBED)
HANDLED = (NotFoundError, CannotUndoError, FencedError, StaleReadError)
"""What callers and workers are told when somebody was there before them; anything else is a fault."""
UNTOUCHED = ("I2", "I7")
"""What is said of pages that were made by hand, without segments and without vectors of their turns."""
QUICK = Policy(strength_days=0.5, forget_brake_share=1.0, forget_brake_min_rows=1000, neighbour_floor=0.1)


@pytest.fixture
def wide(stack: Stack) -> Iterator[Stack]:
    """The same database with room for everybody at once."""
    app, ledger = (Database(stack.url(role), pool_size=16) for role in ("app", "ledger"))
    yield replace(stack, app=app, ledger_database=ledger, ledger=Ledger(ledger))
    app.dispose()
    ledger.dispose()


class Hands:
    """What may be done to one memory, by chance."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.cold = Cold(stack, policy=QUICK)
        self.scope = scope_id(stack.tenant_id, "maya", "companion")

    def work(self, _: random.Random) -> None:
        for lease in self.cold.claim(*WORK):
            with suppress(*HANDLED):
                STAGES[lease.kind](self.cold.parts, lease)
                continue
            self.stack.ledger.release([lease])

    def tell(self, chance: random.Random) -> None:
        said = [f"place {chance.randrange(4)}=city {chance.randrange(50)}" for _ in range(3)]
        self.cold.page(*said, day=chance.random() * 5)

    def pin(self, chance: random.Random) -> None:
        if found := self._one(chance, "select knowledge_id from memoryos.knowledge"):
            pin_knowledge(self.cold.parts, self.stack.tenant_id, found, pinned=chance.random() < 0.5)

    def undo(self, chance: random.Random) -> None:
        if found := self._one(chance, "select verdict_id from memoryos.verdict"):
            undo_verdict(self.cold.parts, self.stack.tenant_id, found)

    def restore(self, chance: random.Random) -> None:
        if found := self._one(chance, "select knowledge_id from memoryos.knowledge where status = 'forgotten'"):
            restore_knowledge(self.cold.parts, self.stack.tenant_id, found)

    def read(self, chance: random.Random) -> None:
        if found := self._one(chance, "select knowledge_id from memoryos.knowledge where status = 'active'"):
            owners = [("knowledge", found)]
            record_access(
                self.stack.app, self.stack.tenant_id, self.scope, retrieval_id=mint_id(), cause="cited", owners=owners
            )
            self.cold.owe(WorkKind.HEAT, self.scope)

    def sweep(self, _: random.Random) -> None:
        rows(self.stack, "update memoryos.work set run_after = now() where kind = 'forget' returning 1")
        self.cold.owe(WorkKind.FORGET, self.scope)

    def _one(self, chance: random.Random, query: str) -> Any:
        found = rows(self.stack, query)
        return chance.choice(found)[0] if found else None


def _often(act: Callable[[random.Random], None], chance: random.Random) -> list[str]:
    """Do something some times; return what went wrong beyond what callers are told."""
    wrong = []
    for _ in range(TRIES):
        try:
            act(chance)
        except HANDLED:
            continue
        except Exception as error:  # noqa: BLE001 - what it is, is what the test is about
            wrong.append(f"{act.__name__}: {type(error).__name__} {error}")
    return wrong


class TestHands:
    def test_nobody_is_in_anybodys_way(self, wide: Stack) -> None:
        """Three workers merge, heat and forget while people tell, pin, undo, restore and read: no odd error."""
        hands = Hands(wide)
        for day in range(PAGES):
            hands.cold.page(f"place {day % 4}=city {day}", f"I saw bird {day}", day=day)
        hands.cold.at(3)
        acts = [hands.work] * 3 + [hands.tell, hands.pin, hands.undo, hands.restore, hands.read, hands.sweep]
        with ThreadPoolExecutor(len(acts)) as threads:
            doing = [threads.submit(_often, act, random.Random(n)) for n, act in enumerate(acts)]
            wrong = [each for one in doing for each in one.result()]
        for _ in range(20):
            hands.work(random.Random(0))
        states = dict(rows(wide, "select state, count(*) from memoryos.work group by 1"))
        versions = rows(
            wide, "select lineage_id, array_agg(version order by version) from memoryos.knowledge group by 1"
        )

        assert wrong == []
        assert set(states) == {"done"}
        assert all(found == list(range(1, len(found) + 1)) for _, found in versions)
        with wide.app.transaction(wide.tenant_id) as connection:
            found = find_violations(connection, wide.tenant_id)
            assert [each for each in found if each.invariant not in UNTOUCHED] == []
