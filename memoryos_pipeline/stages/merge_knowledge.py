"""Merge: hold what pages brought against what is known, page after page in the order they were handed out."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from uuid import UUID

import numpy as np
from sqlalchemy import Connection

from memoryos_pipeline.domain.conflicts import plan_merge
from memoryos_pipeline.domain.errors import InvalidOutputError, StaleReadError
from memoryos_pipeline.domain.ids import derive_id
from memoryos_pipeline.domain.knowledge import CORRECTED_TURNS, Candidate, Decision, Neighbour, Verdict
from memoryos_pipeline.domain.links import (
    CORRECTS,
    SIMILAR,
    Link,
    bare_words,
    both_ways,
    is_dated,
    similarity_reason,
    strongest,
)
from memoryos_pipeline.domain.profile import apply_delta
from memoryos_pipeline.domain.segments import jaccard, match_score
from memoryos_pipeline.domain.truths import Claim, Plan, Ruling, Scene, SlotQuery, content_key, slots_beside
from memoryos_pipeline.domain.work import Lease
from memoryos_pipeline.models.common_part import DATED, common_parts
from memoryos_pipeline.models.lexical import lexical_terms
from memoryos_pipeline.models.protocols import Embedded, Vector
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.candidates import Found, delete_candidates, load_candidates
from memoryos_pipeline.store.clock import read_now
from memoryos_pipeline.store.entities import count_mentions
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.journal import WorkJournal
from memoryos_pipeline.store.knowledge import (
    Origin,
    PageInLine,
    add_sources,
    count_live,
    find_live,
    find_page_in_line,
    find_scope,
    load_truths,
    move_scope,
    write_plan,
)
from memoryos_pipeline.store.ledger import complete, hold
from memoryos_pipeline.store.links import drop_weakest_links, put_links
from memoryos_pipeline.store.postings import put_postings
from memoryos_pipeline.store.profile import load_traits, put_traits
from memoryos_pipeline.store.vectors import ensure_space, get_vectors, nearest, put_vectors, remove_index_rows
from memoryos_pipeline.store.verdicts import VerdictRow, record_verdicts

NEAR_PER_KEPT = 2
"""Of so many rows with the nearest vectors for each that is wanted, what is near without the common part is kept."""
EVENT_OF_STATUS = {"superseded": "knowledge_superseded", "closed": "knowledge_closed"}


@dataclass(frozen=True, slots=True)
class Step:
    """One page to merge as it was read, and the version of the scope it was read at."""

    page: PageInLine
    lock_version: int
    found: Found


@dataclass(frozen=True, slots=True)
class Thought:
    """A candidate under the id it would be stored under, its vector and whatever lies near it, nearest first."""

    ordinal: int
    knowledge_id: UUID
    candidate: Candidate
    embedded: Embedded
    common: Vector
    """What any two statements of its language share in this vector space."""
    near: tuple[Neighbour, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    """What a verdict is asked about: the same slot, and what is near enough."""

    def claim(self) -> Claim:
        """Return what the conflict rules need of it."""
        offered = frozenset(neighbour.knowledge_id for neighbour in self.neighbours)
        return Claim(self.ordinal, self.knowledge_id, self.candidate, offered)

    def nearness(self, other: Neighbour, vector: Sequence[float] | Vector | None) -> float:
        """Return how near a statement is: cosine without the common part, plus Jaccard of terms; 0 to 2."""
        if vector is None:
            return 0.0
        cosine = _cosine(self.embedded.vector - self.common, np.asarray(vector, np.float32) - self.common)
        terms = _terms(self.candidate.content, self.candidate)
        return match_score(cosine, jaccard(terms, _terms(other.content, self.candidate)))


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
    slots = slots_beside(thought.candidate.slot)
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


def _cosine(one: Vector, other: Vector) -> float:
    norms = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.dot(one, other)) / norms if norms else 0.0


def _placed(parts: Parts, thought: Thought, around: Sequence[Neighbour]) -> Thought:
    """Keep what is near; of it a model is shown the same slot first, then the nearest."""
    contradicts, floor = thought.claim().contradicts, parts.policy.neighbour_floor
    near = sorted(around, key=lambda one: (not contradicts(one.slot), -one.similarity, one.knowledge_id))
    shown = [one for one in near if contradicts(one.slot) or one.similarity >= floor][: parts.policy.neighbours]
    return replace(thought, near=tuple(near), neighbours=tuple(shown))


def _resolve(parts: Parts, lease: Lease, thoughts: Sequence[Thought]) -> list[Verdict]:
    """Ask a model about what has neighbours, in one call; what has none is new."""
    asked = [thought for thought in thoughts if thought.neighbours]
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
            _Apply(parts, lease, connection, page).write(decided, step.found)
        delete_candidates(connection, lease.tenant_id, page.page_id)
    move_scope(connection, lease.tenant_id, lease.scope_id, merged_ordinal=page.ordinal)


class _Apply:
    """Everything one page changes, inside the transaction that holds the scope's lock."""

    def __init__(self, parts: Parts, lease: Lease, connection: Connection, page: PageInLine) -> None:
        self._parts = parts
        self._lease = lease
        self._connection = connection
        self._page = page
        self._key = (connection, lease.tenant_id, lease.scope_id)

    def write(self, decided: Sequence[tuple[Thought, Verdict]], found: Found) -> None:
        """Write rows, sources, index, links, verdicts, entities, traits and events of a page."""
        thoughts = {thought.ordinal: thought for thought, _ in decided}
        plan = plan_merge(
            [thought.claim() for thought, _ in decided],
            [verdict for _, verdict in decided],
            self._scene(thoughts.values()),
        )
        self._write_rows(plan, thoughts)
        self._write_index(plan, thoughts)
        self._write_links(plan, thoughts)
        self._write_verdicts(plan, thoughts)
        named = [pair for thought in thoughts.values() for pair in thought.candidate.entities]
        count_mentions(*self._key, named)
        self._write_traits(plan, found)
        record_events(self._connection, self._lease.tenant_id, list(self._events(plan)))

    def _scene(self, thoughts: Iterable[Thought]) -> Scene:
        ids: set[UUID] = set()
        for thought in thoughts:
            ids |= {thought.knowledge_id, *(neighbour.knowledge_id for neighbour in thought.neighbours)}
        truths = load_truths(
            *self._key,
            ids=ids,
            slots=reduce(or_, (slots_beside(thought.candidate.slot) for thought in thoughts), SlotQuery()),
            content_keys=[content_key(thought.candidate.content) for thought in thoughts],
        )
        return Scene(truths, count_live(*self._key), read_now(self._connection), self._parts.policy)

    def _write_rows(self, plan: Plan, thoughts: Mapping[int, Thought]) -> None:
        page = self._page
        assert page.conversation_id is not None  # noqa: S101 - a distilled page has one; for the type checker
        origin = Origin(page.conversation_id, page.extracted_by, self._lease.work_id, self._parts.policy)
        candidates = {ordinal: thought.candidate for ordinal, thought in thoughts.items()}
        write_plan(*self._key, plan=plan, candidates=candidates, origin=origin)
        corrected = [
            (truth.knowledge_id, seq)
            for ordinal, truth in plan.added
            for seq in candidates[ordinal].attributes.get(CORRECTED_TURNS, ())
        ]
        add_sources(self._connection, self._lease.tenant_id, page.conversation_id, corrected)

    def _write_index(self, plan: Plan, thoughts: Mapping[int, Thought]) -> None:
        """Index what is live now, take out what is not: an index row exists while its owner may be recalled."""
        retired = [truth.knowledge_id for truth in plan.retired]
        remove_index_rows(self._connection, self._lease.tenant_id, "knowledge", retired)
        live = [(truth.knowledge_id, thoughts[ordinal]) for ordinal, truth in plan.added if truth.is_live]
        vectors = [(owner, thought.embedded, _digest(thought.candidate.content)) for owner, thought in live]
        said = [(owner, thought.candidate) for owner, thought in live]
        terms = [(owner, lexical_terms(candidate.content, candidate.lang)) for owner, candidate in said]
        space_id = ensure_space(self._connection, self._parts.embedder)
        put_vectors(*self._key, space_id, "knowledge", vectors)
        put_postings(*self._key, "knowledge", terms)

    def _write_links(self, plan: Plan, thoughts: Mapping[int, Thought]) -> None:
        policy = self._parts.policy
        gone = {truth.knowledge_id for truth in plan.retired}
        live = {truth.knowledge_id: ordinal for ordinal, truth in plan.added if truth.is_live}
        links: list[Link] = []
        for knowledge_id, ordinal in live.items():
            near = [one for one in thoughts[ordinal].near if one.knowledge_id not in gone]
            stored = [one for one in near if self._is_stored(one, thoughts, live)]
            near_enough = [one for one in stored if one.similarity >= policy.link_floor]
            found = [_similar(knowledge_id, thoughts[ordinal].candidate, one) for one in near_enough]
            links += strongest(found, cap=policy.links_per_knowledge)
        mirrored = [one for link in links for one in both_ways(link)]
        corrections = [link for ruling in plan.rulings for link in _corrections(ruling, thoughts)]
        put_links(*self._key, links=[*mirrored, *corrections], created_by=self._parts.language_model.name)
        ends = sorted({link.source_id for link in mirrored})
        drop_weakest_links(
            self._connection,
            self._lease.tenant_id,
            ids=ends,
            link_type=SIMILAR,
            cap=policy.links_per_knowledge,
        )

    def _is_stored(self, one: Neighbour, thoughts: Mapping[int, Thought], live: Mapping[UUID, int]) -> bool:
        """Tell whether a neighbour is a live row: one of this very page may have become something else."""
        is_of_page = any(one.knowledge_id == thought.knowledge_id for thought in thoughts.values())
        return one.knowledge_id in live if is_of_page else True

    def _write_verdicts(self, plan: Plan, thoughts: Mapping[int, Thought]) -> None:
        """Keep what was weighed; a statement that met nothing has nothing to explain."""
        rows = [
            self._verdict_row(ruling, thoughts[ruling.ordinal])
            for ruling in plan.rulings
            if ruling.old_id is not None or thoughts[ruling.ordinal].neighbours
        ]
        record_verdicts(*self._key, rows=rows, decided_by=self._parts.language_model.name)

    def _verdict_row(self, ruling: Ruling, thought: Thought) -> VerdictRow:
        similarity = {str(one.knowledge_id): round(one.similarity, 4) for one in thought.neighbours}
        evidence = {"reason": ruling.reason, "page_id": str(self._page.page_id), "similarity": similarity}
        verdict_id = derive_id("verdict", thought.knowledge_id, ruling.decision, ruling.old_id)
        return VerdictRow(
            verdict_id, ruling.decision, ruling.new_id, ruling.old_id, thought.candidate.content, evidence
        )

    def _write_traits(self, plan: Plan, found: Found) -> None:
        """Apply trait deltas to what stands on live knowledge; history and hearsay support no trait."""
        if not found.traits:
            return
        stands = {ordinal: truth.knowledge_id for ordinal, truth in plan.added if truth.is_live}
        stands.update({ordinal: knowledge_id for knowledge_id, ordinal in plan.supported})
        before = load_traits(*self._key, actors=[delta.actor for delta in found.traits])
        after = dict(before)
        for delta in found.traits:
            evidence = [stands[ordinal] for ordinal in delta.evidence if ordinal in stands]
            trait = apply_delta(after.get((delta.actor, delta.dimension)), delta, evidence)
            if trait is not None:
                after[delta.actor, delta.dimension] = trait
        put_traits(*self._key, [trait for key, trait in after.items() if before.get(key) != trait])

    def _events(self, plan: Plan) -> Iterator[Event]:
        for _, truth in plan.added:
            yield self._event("knowledge_added", truth.knowledge_id)
        for truth in plan.retired:
            yield self._event(EVENT_OF_STATUS[truth.status], truth.knowledge_id, truth.superseded_by)
        for knowledge_id in plan.reinforced:
            yield self._event("knowledge_reinforced", knowledge_id)

    def _event(self, kind: str, subject_id: UUID, related_id: UUID | None = None) -> Event:
        return Event(
            kind,
            self._lease.scope_id,
            subject_id=subject_id,
            related_id=related_id,
            conversation_id=self._page.conversation_id,
            work_id=self._lease.work_id,
        )


def _similar(knowledge_id: UUID, candidate: Candidate, other: Neighbour) -> Link:
    reason = similarity_reason(_terms(candidate.content, candidate), _terms(other.content, candidate))
    return Link(knowledge_id, other.knowledge_id, SIMILAR, other.similarity, reason)


def _corrections(ruling: Ruling, thoughts: Mapping[int, Thought]) -> Iterator[Link]:
    is_correction = thoughts[ruling.ordinal].candidate.kind == "correction"
    if is_correction and ruling.new_id and ruling.old_id and ruling.decision is not Decision.COEXIST:
        yield Link(ruling.new_id, ruling.old_id, CORRECTS, 1.0, ruling.reason)


def _terms(content: str, candidate: Candidate) -> list[str]:
    """Return the terms of a statement by the language of a candidate, without date and speaker."""
    return lexical_terms(bare_words(content, candidate.actor), candidate.lang)


def _digest(content: str) -> bytes:
    return hashlib.sha256(content.encode("utf-8")).digest()
