"""Every preset does what it claims: one user each, side by side in one database, under policies of their own."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.ids import scope_id
from memoryos_pipeline.domain.policies_presets import CLAIMS, PRESETS, changed
from memoryos_pipeline.domain.work import Lease, WorkKind
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.pipeline import STAGES
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.stages.restore import restore_knowledge
from memoryos_pipeline.stages.set_policy import put_policy
from memoryos_pipeline.store.sweeps import owe_due
from tests.builders import START, claim_due, close, record, rows, set_clock
from tests.conftest import Stack
from tests.integration.stages.cold import ScriptedModel

EVENTS = {
    "sealed": ("page_sealed",),
    "cooled": ("page_cooled",),
    "heated": ("page_heated",),
    "extracted": ("page_distilled",),
    "closed": ("knowledge_superseded", "knowledge_closed"),
    "forgotten": ("knowledge_forgotten",),
    "restored": ("knowledge_restored",),
}
ROWS = {
    "linked": "select count(*) from memoryos.knowledge_link where scope_id = :scope",
    "annotated": """
        select count(*) from memoryos.knowledge_note n join memoryos.knowledge k using (tenant_id, knowledge_id)
         where k.scope_id = :scope""",
}
COUNT = "select count(*) from memoryos.event where scope_id = :scope and kind = any(:kinds)"
ACCESS = text("""
    insert into memoryos.access_event (tenant_id, retrieval_id, owner_kind, owner_id, scope_id, cause, at)
    select tenant_id, gen_random_uuid(), 'page', page_id, scope_id, 'injected', memoryos.now()
      from memoryos.page p cross join generate_series(1, 13)
     where exists (select from memoryos.conversation c
                    where c.tenant_id = p.tenant_id and c.conversation_id = p.conversation_id
                      and c.external_id = 'c1' and p.last_seq = c.next_seq - 1)
""")
"""Thirteen retrievals of the last page of the first conversation, for everybody."""
SAID = ["residence=Seoul", *(f"tennis with Anna in the park on day {n}" for n in range(24))]


@dataclass
class Town:
    """Seven users whose memories live through the same year."""

    stack: Stack

    def __post_init__(self) -> None:
        self.parts = Parts(self.stack.app, HashingEmbedder(), ScriptedModel())
        for name, policy in PRESETS.items():
            unbraked = changed(policy, {"forget_brake_min_rows": 1_000})
            put_policy(self.stack.app, self.stack.tenant_id, user_id=name, preset=name, policy=unbraked)

    def say(self, *contents: str, conversation: str) -> None:
        for name in PRESETS:
            talk = record(self.stack, *contents, user_id=name, conversation=conversation)
            close(self.stack, talk, name)
        self.work()

    def later(self, days: float) -> None:
        set_clock(self.stack, START + timedelta(days=days))
        owe_due(self.stack.ledger_database)
        self.work()

    def read(self) -> None:
        with self.stack.app.transaction(self.stack.tenant_id) as connection:
            connection.execute(ACCESS)

    def work(self) -> None:
        while due := claim_due(self.stack, lease_seconds=600):
            for lease in due:
                self._stage(lease)(self.parts, lease)

    def _stage(self, lease: Lease) -> Callable[[Parts, Lease], None]:
        return STAGES[WorkKind(lease.kind)]

    def scope(self, name: str) -> UUID:
        return scope_id(self.stack.tenant_id, name, "companion")

    def restore_one(self, name: str) -> None:
        query = "select knowledge_id from memoryos.knowledge where scope_id = :scope and status = 'forgotten' limit 1"
        for (knowledge_id,) in rows(self.stack, query, scope=self.scope(name)):
            restore_knowledge(self.parts, self.stack.tenant_id, knowledge_id)

    def count(self, name: str, verb: str) -> int:
        scope = self.scope(name)
        if verb in ROWS:
            return int(rows(self.stack, ROWS[verb], scope=scope)[0][0])
        return int(rows(self.stack, COUNT, scope=scope, kinds=list(EVENTS[verb]))[0][0])


def _live_a_year(stack: Stack) -> Town:
    set_clock(stack, START)
    town = Town(stack)
    town.say(*SAID, conversation="c1")
    town.read()
    town.later(1)
    town.say("residence=Busan", "tennis with Anna in the park again", conversation="c2")
    town.read()
    for days in (14, 15, 150):
        town.later(days)
        for name in PRESETS:
            town.restore_one(name)
    return town


def _drawn(table: dict[str, dict[str, int]]) -> str:
    verbs = (*EVENTS, *ROWS)
    lines = [f"{'':<12}" + "".join(f"{verb:>10}" for verb in verbs)]
    lines += [f"{name:<12}" + "".join(f"{counts[verb]:>10}" for verb in verbs) for name, counts in table.items()]
    return "\n".join(["", *lines])


class TestPresets:
    @pytest.mark.slow
    def test_each_verb_a_preset_claims_happens_under_it(self, stack: Stack) -> None:
        """The table preset x verb: above 0 wherever the preset claims it."""
        town = _live_a_year(stack)
        table = {name: {verb: town.count(name, verb) for verb in (*EVENTS, *ROWS)} for name in PRESETS}
        missing = [(name, verb) for name in PRESETS for verb in CLAIMS[name] if table[name][verb] == 0]

        assert missing == [], _drawn(table)
        assert all(table[name]["forgotten"] == 0 for name in ("bai_lab", "a_mem", "mem0", "mem0g")), table
        assert all(table[name]["linked"] == 0 for name in ("seed000", "bai_lab", "memorybank", "mem0")), table
