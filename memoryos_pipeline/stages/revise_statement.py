"""Revise one statement by decision: new words, the old ones as history, in a decision that can be undone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.errors import AlreadyKnownError, NotFoundError
from memoryos_pipeline.domain.ids import derive_id
from memoryos_pipeline.domain.language import detect_language
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.truths import Truth, content_key
from memoryos_pipeline.domain.undoing import PERSON, Standing, Swap, record_swaps, standing_of
from memoryos_pipeline.domain.work import Owed, WorkKind
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.clock import read_now
from memoryos_pipeline.store.database import try_again
from memoryos_pipeline.store.entities import normalize_name
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.forgetting import find_standing
from memoryos_pipeline.store.knowledge import end_of, find_scope, load_truths, move_scope, update_knowledge
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.relations import follow_knowledge
from memoryos_pipeline.store.revising import Revision, copy_statement, find_twin
from memoryos_pipeline.store.vectors import remove_index_rows
from memoryos_pipeline.store.verdicts import VerdictRow, record_verdicts

REASON = "revised by a person"


@dataclass(frozen=True, slots=True)
class Revised:
    """What came of it: the version that holds now, and the decision that made it (None when nothing changed)."""

    knowledge_id: UUID
    verdict_id: UUID | None


@dataclass(frozen=True, slots=True)
class _Change:
    """A live statement, and the version that follows it."""

    scope_id: UUID
    old: Truth
    new: Truth
    content: str


def revise_statement(parts: Parts, tenant_id: UUID, knowledge_id: UUID, content: str) -> Revised:
    """Let a live statement say something else from now on; it keeps its sources, its weight and a pin.

    What it said becomes history, as of now. Words that it has already change nothing, nor does the
    same revision sent again. Raises NotFoundError when it is
    unknown or not live, AlreadyKnownError when another live statement says that.
    """
    return try_again(partial(_revise_once, parts, tenant_id, knowledge_id, content))


def _revise_once(parts: Parts, tenant_id: UUID, knowledge_id: UUID, content: str) -> Revised:
    with parts.database.transaction(tenant_id) as connection:
        found = find_standing(connection, tenant_id, knowledge_id)
        if found is None or find_scope(connection, tenant_id, found.scope_id, lock=True) is None:
            raise NotFoundError
        truths = load_truths(connection, tenant_id, found.scope_id, ids=[knowledge_id])
        old = next((truth for truth in truths if truth.knowledge_id == knowledge_id), None)
        if old is None or not old.is_live:
            return _done_already(truths, old, content)
        if content_key(content) == old.content_key:
            return Revised(knowledge_id, None)
        if find_twin(connection, tenant_id, knowledge_id, content_key(content)) is not None:
            raise AlreadyKnownError
        version = 1 + max(truth.version for truth in truths if truth.lineage_id == old.lineage_id)
        now = read_now(connection)
        new = replace(
            old, knowledge_id=derive_id("knowledge", old.lineage_id, "revised", version), version=version,
            content_key=content_key(content), valid_from=now, last_reinforced_at=now,
        )  # fmt: skip
        governed = parts.under_policy(connection, tenant_id, found.scope_id)
        return _write(governed, connection, tenant_id, _Change(found.scope_id, old, new, content))


def _done_already(truths: Sequence[Truth], old: Truth | None, content: str) -> Revised:
    """Answer a request that is sent again because its answer got lost as it was answered. Raises NotFoundError."""
    for truth in truths:
        is_next = old is not None and truth.knowledge_id == old.superseded_by
        if is_next and truth.is_live and truth.content_key == content_key(content):
            return Revised(truth.knowledge_id, None)
    raise NotFoundError("this statement is history; revise the one that holds now")


def _write(parts: Parts, connection: Connection, tenant_id: UUID, change: _Change) -> Revised:
    scope_id, old, new = change.scope_id, change.old, change.new
    retired = replace(
        old, status="superseded", superseded_by=new.knowledge_id, valid_to=max(new.valid_from, old.valid_from),
        close_reason=REASON,
    )  # fmt: skip
    update_knowledge(connection, tenant_id, truths=[retired], policy=parts.policy)
    copy_statement(connection, tenant_id, old.knowledge_id, _revision(new, change.content, parts.policy))
    remove_index_rows(connection, tenant_id, "knowledge", [old.knowledge_id])
    owed = [Owed(WorkKind.EMBED, f"knowledge:{new.knowledge_id}", scope_id)]
    owe(connection, tenant_id, owed, max_attempts=parts.max_attempts)
    follow_knowledge(connection, tenant_id, [old.knowledge_id])
    move_scope(connection, tenant_id, scope_id)
    _tell(connection, tenant_id, scope_id, old=old.knowledge_id, new=new.knowledge_id)
    swaps = [Swap(standing_of(old), standing_of(retired)), Swap(_taken_back(new), standing_of(new))]
    verdict = _verdict(old, new.knowledge_id, change.content, swaps)
    record_verdicts(connection, tenant_id, scope_id, rows=[verdict], decided_by=PERSON)
    return Revised(new.knowledge_id, verdict.verdict_id)


def _revision(new: Truth, content: str, policy: Policy) -> Revision:
    return Revision(
        new.knowledge_id, new.version, content, new.content_key, normalize_name(content), detect_language(content),
        new.valid_from, end_of(new, policy), PERSON,
    )  # fmt: skip


def _taken_back(new: Truth) -> Standing:
    """Return how the new version stands when the decision is undone: it held for no time at all."""
    return replace(standing_of(new), status="closed", valid_to=new.valid_from, close_reason="taken back")


def _verdict(old: Truth, new_id: UUID, content: str, swaps: list[Swap]) -> VerdictRow:
    evidence = {"reason": REASON, "page_id": None, "undo": record_swaps(swaps)}
    return VerdictRow(derive_id("verdict", new_id, "UPDATE"), "UPDATE", new_id, old.knowledge_id, content, evidence)


def _tell(connection: Connection, tenant_id: UUID, scope_id: UUID, *, old: UUID, new: UUID) -> None:
    added = Event("knowledge_added", scope_id, subject_id=new)
    ended = Event("knowledge_superseded", scope_id, subject_id=old, related_id=new)
    record_events(connection, tenant_id, [added, ended])
