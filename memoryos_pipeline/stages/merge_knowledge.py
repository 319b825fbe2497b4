"""Merge: hold what pages brought against what is known, page after page in the order they were handed out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from sqlalchemy import Connection

from memoryos_pipeline.domain.errors import InvalidOutputError, StaleReadError
from memoryos_pipeline.domain.ids import derive_id
from memoryos_pipeline.domain.knowledge import Candidate, Decision, Neighbour, Verdict
from memoryos_pipeline.domain.links import is_dated
from memoryos_pipeline.domain.statements_verdicts import bears_on
from memoryos_pipeline.domain.truths import slots_near
from memoryos_pipeline.domain.work import Lease
from memoryos_pipeline.models.common_part import DATED, common_parts
from memoryos_pipeline.models.protocols import Vector
from memoryos_pipeline.stages.merge_save import PageSave
from memoryos_pipeline.stages.merge_thought import Step, Thought
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.candidates import Found, delete_candidates, load_candidates
from memoryos_pipeline.store.journal import WorkJournal
from memoryos_pipeline.store.knowledge import find_live, find_page_in_line, find_scope, move_scope
from memoryos_pipeline.store.ledger import complete, hold
from memoryos_pipeline.store.vectors import ensure_space, get_vectors, nearest

NEAR_PER_KEPT = 2
"""Of so many rows with the nearest vectors for each that is wanted, what is near without the common part is kept."""


def merge_knowledge(parts: Parts, lease: Lease) -> None:
    """Merge every page of the scope that is next in line, one fenced transaction a page.

    Raises ModelError, StaleReadError when live knowledge changed while thinking, FencedError when the lease was lost.
    """
    parts = parts.of_lease(lease)
    while (step := _next_step(parts, lease)) is not None:
        thoughts = _look_around(parts, lease, _embed(parts, step))
        verdicts = _resolve(parts, lease, thoughts)
        with parts.database.transaction(lease.tenant_id) as connection:
            _save(parts, lease, connection, step, list(zip(thoughts, verdicts, strict=True)))
            hold(connection, lease)


def _next_step(parts: Parts, lease: Lease) -> Step | None:
    """Return the next page, or None after completing the work: nothing is in line, or the next is not distilled yet.

    Whoever distills the page that is waited for owes this work again, so the line never stands still for it.
    """
    with parts.database.transaction(lease.tenant_id) as connection:
        scope = find_scope(connection, lease.tenant_id, lease.scope_id)
        page = find_page_in_line(connection, lease.tenant_id, lease.scope_id, scope) if scope else None
        if scope is None or page is None or page.state == "waiting":
            complete(connection, lease)
            return None
        merges = page.page_id is not None and page.state == "distilled"
        found = load_candidates(connection, lease.tenant_id, page.page_id) if merges and page.page_id else Found()
        return Step(page, scope.lock_version, found)


def _embed(parts: Parts, step: Step) -> list[Thought]:
    """Embed a page's candidates, in the order they were said."""
    found = sorted(step.found.candidates, key=lambda pair: (pair[1].turn_at, pair[0]))
    if not found:
        return []
    vectors = parts.embedder.embed_passages([candidate.content for _, candidate in found])
    page = step.page
    return [
        Thought(
            n, derive_id("knowledge", page.page_id, n, page.extracted_by), candidate, vector, _common(parts, candidate)
        )
        for (n, candidate), vector in zip(found, vectors, strict=True)
    ]


def _common(parts: Parts, candidate: Candidate) -> Vector:
    common = common_parts(parts.embedder, beginning=DATED if is_dated(candidate.content) else "")
    return np.asarray(common.get(candidate.lang, common["und"]), dtype=np.float32)


def _look_around(parts: Parts, lease: Lease, thoughts: Sequence[Thought]) -> list[Thought]:
    """Find for each thought what is stored near it, and what was said before it on the same page."""
    if not thoughts:
        return []
    with parts.database.transaction(lease.tenant_id) as connection:
        space_id = ensure_space(connection, parts.embedder)
        stored = [_stored_near(parts, lease, connection, space_id, thought) for thought in thoughts]
    return [
        _placed(parts, thought, [*near, *_said_before(thoughts[:n], thought)])
        for n, (thought, near) in enumerate(zip(thoughts, stored, strict=True))
    ]


def _stored_near(
    parts: Parts, lease: Lease, connection: Connection, space_id: int, thought: Thought
) -> list[Neighbour]:
    key = (connection, lease.tenant_id, lease.scope_id)
    limit = NEAR_PER_KEPT * max(parts.policy.neighbours, parts.policy.links_per_knowledge)
    hits = nearest(*key, space_id, ["knowledge"], thought.embedded.vector, limit)
    slots = slots_near(thought.candidate.slot)
    found = find_live(*key, similarity={owner: cosine for _, owner, cosine in hits}, slots=slots)
    owners = [one.knowledge_id for one in found]
    vectors = get_vectors(connection, lease.tenant_id, space_id=space_id, owner_kind="knowledge", owner_ids=owners)
    return [replace(one, similarity=thought.nearness(one, vectors.get(one.knowledge_id))) for one in found]


def _said_before(earlier: Sequence[Thought], thought: Thought) -> Iterator[Neighbour]:
    for one in earlier:
        candidate = one.candidate
        said = Neighbour(
            knowledge_id=one.knowledge_id,
            lineage_id=one.knowledge_id,
            version=1,
            kind=candidate.kind,
            content=candidate.content,
            actor=candidate.actor,
            slot=candidate.slot,
            slot_value=candidate.slot_value,
            turn_at=candidate.turn_at,
            event_at=candidate.event_at,
            similarity=0.0,
        )
        yield replace(said, similarity=thought.nearness(said, one.embedded.vector))


def _placed(parts: Parts, thought: Thought, around: Sequence[Neighbour]) -> Thought:
    """Keep what is near; of it a model is shown first what the statement may end, then the nearest."""
    contradicts, floor = thought.claim().contradicts, parts.policy.neighbour_floor
    concerned = {one.knowledge_id for one in around if contradicts(one.slot) or bears_on(thought.candidate, one)}
    near = sorted(around, key=lambda one: (one.knowledge_id not in concerned, -one.similarity, one.knowledge_id))
    shown = [one for one in near if one.knowledge_id in concerned or one.similarity >= floor]
    return replace(thought, near=tuple(near), neighbours=tuple(shown[: parts.policy.neighbours]))


def _resolve(parts: Parts, lease: Lease, thoughts: Sequence[Thought]) -> list[Verdict]:
    """Ask a model about what has neighbours, in one call; what has none is new."""
    asks = parts.policy.resolution != "append"
    asked = [thought for thought in thoughts if thought.neighbours and asks]
    if not asked:
        return [Verdict(Decision.ADD)] * len(thoughts)
    answers = parts.language_model.resolve(
        [thought.candidate for thought in asked],
        [thought.neighbours for thought in asked],
        journal=WorkJournal(parts.database, lease),
    )
    if len(answers) != len(asked):
        raise InvalidOutputError(f"{len(answers)} verdicts for {len(asked)} candidates")
    verdict_of = {thought.ordinal: answer for thought, answer in zip(asked, answers, strict=True)}
    return [verdict_of.get(thought.ordinal, Verdict(Decision.ADD)) for thought in thoughts]


def _save(
    parts: Parts, lease: Lease, connection: Connection, step: Step, decided: Sequence[tuple[Thought, Verdict]]
) -> None:
    scope = find_scope(connection, lease.tenant_id, lease.scope_id, lock=True)
    if scope is None or scope.lock_version != step.lock_version:
        raise StaleReadError
    page = step.page
    if page.page_id is not None and page.conversation_id is not None:
        if decided:
            PageSave(parts, lease, connection, page).write(decided, step.found)
        delete_candidates(connection, lease.tenant_id, page.page_id)
    move_scope(connection, lease.tenant_id, lease.scope_id, merged_ordinal=page.ordinal)
