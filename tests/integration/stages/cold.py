"""A past to distill and merge, and a language model whose every decision can be read off its turns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import text

from memoryos_pipeline.domain.ids import conversation_id, page_id, turn_id
from memoryos_pipeline.domain.knowledge import (
    Candidate,
    Decision,
    Distillate,
    Neighbour,
    TraitDelta,
    Verdict,
)
from memoryos_pipeline.domain.pages import PageSummary, PageText
from memoryos_pipeline.domain.policies import DEFAULT, Policy
from memoryos_pipeline.domain.turns import Turn
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.models.protocols import Journal
from memoryos_pipeline.stages.distill_page import distill_page
from memoryos_pipeline.stages.merge_knowledge import merge_knowledge
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.clock import freeze_clock
from memoryos_pipeline.store.ledger import owe, owe_once
from tests.builders import create_scope
from tests.conftest import Stack

START = datetime(2026, 1, 1, 9, tzinfo=UTC)

CONVERSATION = text("""
    insert into memoryos.conversation (tenant_id, conversation_id, scope_id, external_id, next_seq, sealed_through,
                                       indexed_through)
    values (:tenant, :conversation, :scope, :name, 1, 0, 0) on conflict do nothing
""")
GROW = text("""
    update memoryos.conversation set next_seq = next_seq + :n, sealed_through = sealed_through + :n,
                                     indexed_through = indexed_through + :n
     where tenant_id = :tenant and conversation_id = :conversation returning next_seq - :n
""")
TURN = text("""
    insert into memoryos.turn (tenant_id, conversation_id, seq, turn_id, scope_id, client_turn_id, body_sha256, role,
                               speaker, content, kind, lang, occurred_at, utc_offset_minutes)
    values (:tenant, :conversation, :seq, :turn, :scope, :name, '\\x00', :role, :speaker, :content, :kind, 'en', :at, 0)
""")
PAGE = text("""
    insert into memoryos.page (tenant_id, page_id, scope_id, conversation_id, first_seq, last_seq, first_turn_at,
                               last_turn_at, lang, distill_cause, extract_ordinal)
    values (:tenant, :page, :scope, :conversation, :first, :last, :at, :until, 'en', :cause, :ordinal)
""")
ORDINAL = text("""
    update memoryos.scope set extract_ordinal = extract_ordinal + 1
     where tenant_id = :tenant and scope_id = :scope returning extract_ordinal
""")
DUE = text("select work_id from memoryos.work where kind = any(:kinds) order by work_id")


@dataclass
class ScriptedModel:
    """Reads `slot=value` turns as facts of a slot, `!statement` turns as traits too, `-` turns as nothing."""

    name: str = "scripted/1"
    resolved: list[tuple[Sequence[Candidate], Sequence[Sequence[Neighbour]]]] = field(default_factory=list)
    overrule: Callable[[Candidate, Sequence[Neighbour]], Verdict] | None = None
    distilled: list[PageText] = field(default_factory=list)

    def summarize(self, page: PageText, *, journal: Journal) -> PageSummary:
        """Say as little as possible."""
        return PageSummary("summary", (), (), False, self.name)

    def distill(self, page: PageText, *, journal: Journal) -> Distillate:
        """Take every turn but those that start with `-` as one statement."""
        self.distilled.append(page)
        candidates = tuple(_candidate(turn) for turn in page.turns if not turn.content.startswith("-"))
        traits = tuple(
            TraitDelta("Maya", "curiosity", "high", 0.5, (n,))
            for n, one in enumerate(candidates)
            if one.attributes.get("trait")
        )
        return Distillate(candidates, traits, self.name)

    def resolve(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Neighbour]], *, journal: Journal
    ) -> list[Verdict]:
        """Same slot and value: known. Same slot, other value: replaced, unless it was said earlier. Else new."""
        self.resolved.append((candidates, neighbours))
        decide = self.overrule or _decide
        return [decide(one, near) for one, near in zip(candidates, neighbours, strict=True)]

    def answer(self, question: str, context: str, *, journal: Journal) -> str | None:
        """Do not generate."""
        return None


def _candidate(turn: Turn) -> Candidate:
    content, _, entity = turn.content.partition(" @")
    slot, is_slot, value = content.partition("=")
    important = content.startswith("*")
    correction = content.startswith("?")
    return Candidate(
        kind="correction" if correction else "assistant_kb" if turn.role == "assistant" else "fact",
        content=f"{turn.speaker}: the {slot} is {value}" if is_slot else content.lstrip("!*?"),
        lang="en",
        actor=turn.speaker,
        source_seqs=(turn.seq,),
        turn_at=datetime(1999, 1, 1, tzinfo=UTC),
        importance=0.95 if important else 0.5,
        slot=f"{turn.speaker}|{slot}".lower() if is_slot else None,
        slot_value=value or None,
        entities=((entity, "person"),) if entity else (),
        attributes={"trait": content.startswith("!"), "corrected_seqs": [turn.seq - 1] if correction else []},
    )


def _decide(candidate: Candidate, near: Sequence[Neighbour]) -> Verdict:
    same_slot = [one for one in near if one.slot is not None and one.slot == candidate.slot]
    if not same_slot:
        return Verdict(Decision.ADD)
    newest = max(same_slot, key=lambda one: one.turn_at)
    if newest.slot_value == candidate.slot_value:
        return Verdict(Decision.NOOP, newest.knowledge_id, "same value")
    late = candidate.turn_at < newest.turn_at
    return Verdict(Decision.UPDATE, newest.knowledge_id, "another value", arrived_late=late)


class Cold:
    """The cold half of a pipeline over one stack: pages go in, work is done when it is told to be."""

    def __init__(self, stack: Stack, *, policy: Policy = DEFAULT) -> None:
        self.stack = stack
        self.tenant_id = stack.tenant_id
        self.model = ScriptedModel()
        self.parts = Parts(stack.app, HashingEmbedder(), self.model, policy)

    def page(
        self, *turns: str, day: float = 0, user: str = "maya", conversation: str = "c1", cause: str = "sealed",
        distill: bool = True,
    ) -> UUID:  # fmt: skip
        """Seal a page of turns said on `day`, and hand it to distillation."""
        scope = create_scope(self.stack, user)
        talk = conversation_id(scope, conversation)
        key = {"tenant": self.tenant_id, "scope": scope, "conversation": talk}
        at = START + timedelta(days=day)
        with self.stack.app.transaction(self.tenant_id) as connection:
            connection.execute(CONVERSATION, {**key, "name": conversation})
            first = connection.execute(GROW, {**key, "n": len(turns)}).scalar_one()
            for n, said in enumerate(turns, first):
                connection.execute(TURN, {**key, **_turn(talk, n, said), "at": at + timedelta(minutes=n - first)})
            ordinal = connection.execute(ORDINAL, key).scalar_one()
            page = page_id(talk, first)
            span = {"page": page, "first": first, "last": first + len(turns) - 1}
            until = at + timedelta(minutes=len(turns))
            connection.execute(PAGE, {**key, **span, "at": at, "until": until, "cause": cause, "ordinal": ordinal})
            owed = [Owed(WorkKind.DISTILL, str(page), scope)] if distill else []
            owe_once(connection, self.tenant_id, owed)
        return page

    def claim(self, *kinds: WorkKind, lease_seconds: float = 60) -> list[Lease]:
        """Claim what is due of these kinds."""
        with self.stack.ledger_database.across_tenants() as connection:
            ids = connection.execute(DUE, {"kinds": [str(kind) for kind in kinds]}).scalars().all()
        return self.stack.ledger.claim(ids, owner="test", lease_seconds=lease_seconds)

    def owe(self, kind: WorkKind, scope: UUID) -> None:
        """Ask for an actor of a scope."""
        with self.stack.app.transaction(self.tenant_id) as connection:
            owe(connection, self.tenant_id, [Owed(kind, str(scope), scope)])

    def work(self) -> None:
        """Distill and merge until nothing is due."""
        while leases := self.claim(WorkKind.DISTILL, WorkKind.MERGE):
            for lease in leases:
                stage = distill_page if lease.kind == WorkKind.DISTILL else merge_knowledge
                stage(self.parts, lease)

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """Run a query as the tenant."""
        with self.stack.app.transaction(self.tenant_id) as connection:
            return [tuple(row) for row in connection.execute(text(query), values)]

    def live(self) -> list[str]:
        """Return the live statements."""
        return [
            row[0] for row in self.rows("select content from memoryos.knowledge where status = 'active' order by 1")
        ]

    def at(self, day: float) -> None:
        """Freeze recorded time on a day."""
        with self.stack.owner.across_tenants() as connection:
            freeze_clock(connection, START + timedelta(days=day))

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return every derived row but clocks and work ids."""
        return {name: self.rows(query) for name, query in DUMPS.items()}


def _turn(talk: UUID, seq: int, said: str) -> dict[str, Any]:
    role, separator, content = said.partition("> ")
    spoken = content if separator else said
    is_assistant = separator and role == "assistant"
    return {
        "seq": seq, "turn": turn_id(talk, f"t{seq}"), "name": f"t{seq}", "content": spoken,
        "role": "assistant" if is_assistant else "user", "speaker": "Companion" if is_assistant else "Maya",
        "kind": "recalled" if separator and role == "recalled" else "normal",
    }  # fmt: skip


DUMPS = {
    "knowledge": """
        select knowledge_id, lineage_id, version, content, slot, status, valid_from, valid_to, superseded_by,
               close_reason, turn_at, importance, strength_days from memoryos.knowledge order by 1""",
    "source": "select knowledge_id, conversation_id, seq, page_id from memoryos.knowledge_source order by 1, 2, 3",
    "link": "select source_id, target_id, type, weight, reason from memoryos.knowledge_link order by 1, 2, 3",
    "verdict": "select verdict_id, decision, new_knowledge_id, old_knowledge_id from memoryos.verdict order by 1",
    "embedding": "select owner_kind, owner_id, cast(vec as text) from memoryos.embedding order by 1, 2",
    "posting": "select term, owner_kind, owner_id, tf from memoryos.posting order by 1, 2, 3",
    "entity": "select name_norm, type, mentions from memoryos.entity order by 1, 2",
    "trait": "select actor, dimension, level, confidence, knowledge_ids, version from memoryos.trait order by 1, 2",
    "candidate": "select page_id, ordinal from memoryos.candidate order by 1, 2",
    "scope": "select scope_id, merged_ordinal from memoryos.scope order by 1",
}
