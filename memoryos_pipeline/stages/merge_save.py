"""Writes everything one merged page changes, in the transaction that holds the scope's lock."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.conflicts import plan_merge
from memoryos_pipeline.domain.ids import derive_id
from memoryos_pipeline.domain.knowledge import CORRECTED_TURNS, Candidate, Decision, Neighbour, Verdict
from memoryos_pipeline.domain.links import CORRECTS, SIMILAR, Link, both_ways, similarity_reason, strongest
from memoryos_pipeline.domain.notes import Note, evolve, first_note
from memoryos_pipeline.domain.profile import apply_delta
from memoryos_pipeline.domain.relations import triples_of
from memoryos_pipeline.domain.truths import Plan, Ruling, Scene, SlotQuery, content_key, slots_beside
from memoryos_pipeline.domain.undoing import undo_record
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.models.lexical import lexical_terms
from memoryos_pipeline.stages.merge_thought import Thought, terms_of
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.candidates import Found
from memoryos_pipeline.store.clock import read_now
from memoryos_pipeline.store.entities import put_mentions
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.knowledge import Origin, PageInLine, add_sources, count_live, load_truths, write_plan
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.links import drop_weakest_links, put_links
from memoryos_pipeline.store.notes import latest_notes, put_notes
from memoryos_pipeline.store.postings import put_postings
from memoryos_pipeline.store.profile import load_traits, put_traits
from memoryos_pipeline.store.relations import follow_knowledge, put_relations
from memoryos_pipeline.store.vectors import ensure_space, put_vectors, remove_index_rows
from memoryos_pipeline.store.verdicts import VerdictRow, record_verdicts

EVENT_OF_STATUS = {"superseded": "knowledge_superseded", "closed": "knowledge_closed"}


class PageSave:
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
        self._write_notes(plan, thoughts)
        self._write_entities(plan, thoughts)
        self._write_verdicts(plan, thoughts)
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

    def _write_notes(self, plan: Plan, thoughts: Mapping[int, Thought]) -> None:
        """Note what is new, and let it annotate its nearest neighbours; their contents stay as they are."""
        policy = self._parts.policy
        if not policy.evolution_neighbours:
            return
        gone = {truth.knowledge_id for truth in plan.retired}
        live = {truth.knowledge_id: ordinal for ordinal, truth in plan.added if truth.is_live}
        near = {
            owner: [
                one for one in thoughts[n].near if one.knowledge_id not in gone and one.similarity >= policy.link_floor
            ]
            for owner, n in live.items()
        }
        around = {one.knowledge_id for found in near.values() for one in found}
        notes = latest_notes(self._connection, self._lease.tenant_id, around)
        written: list[Note] = []
        for owner, n in live.items():
            own = _note(owner, thoughts[n].candidate)
            notes[owner] = own
            written.append(own)
            known = [one for one in near[owner] if self._is_stored(one, thoughts, live)]
            for one in known[: policy.evolution_neighbours]:
                before = notes.get(one.knowledge_id) or Note(one.knowledge_id, 0, "", (), ())
                after = evolve(before, by=own, reason=_similar(owner, thoughts[n].candidate, one).reason)
                if after is not None:
                    notes[one.knowledge_id] = after
                    written.append(after)
        put_notes(self._connection, self._lease.tenant_id, written)
        if policy.ranking == "a_mem":
            self._embed_again({note.knowledge_id for note in written if note.cause_id} | set(live))

    def _embed_again(self, ids: set[UUID]) -> None:
        """Owe the vectors of statements whose notes changed: where notes are embedded, nothing else is stale."""
        owed = [Owed(WorkKind.EMBED, f"knowledge:{each}", self._lease.scope_id) for each in sorted(ids)]
        owe(self._connection, self._lease.tenant_id, owed, max_attempts=self._parts.max_attempts)

    def _write_entities(self, plan: Plan, thoughts: Mapping[int, Thought]) -> None:
        """Store whom statements name and what new ones relate, and end what stood on those that are retired.

        Relations end with their statements whatever the policy is now.
        """
        graph = self._parts.policy.graph
        related = {n: triples_of(thoughts[n].candidate) for n, _ in plan.added} if graph == "triples" else {}
        if graph != "off":
            said = [*((truth.knowledge_id, n) for n, truth in plan.added), *plan.supported]
            named: dict[UUID, list[tuple[str, str]]] = defaultdict(list)
            for knowledge_id, n in said:
                named[knowledge_id] += thoughts[n].candidate.entities
                named[knowledge_id] += [end for triple in related.get(n, ()) for end in triple.ends]
            put_mentions(*self._key, named=named)
        if related:
            rows = {truth.knowledge_id: (related[n], truth.valid_from, truth.valid_to) for n, truth in plan.added}
            put_relations(*self._key, stated=rows)
        if plan.changed:
            follow_knowledge(self._connection, self._lease.tenant_id, [truth.knowledge_id for truth in plan.changed])

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
        evidence = {
            "reason": ruling.reason,
            "page_id": str(self._page.page_id),
            "similarity": similarity,
            "undo": undo_record(ruling),
        }
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


def _note(knowledge_id: UUID, candidate: Candidate) -> Note:
    day = candidate.event_at or candidate.turn_at
    topics = candidate.attributes.get("topics") or ()
    context = f"{candidate.kind} of {candidate.actor}, {day.date().isoformat()}"
    return first_note(knowledge_id, context=context, keywords=candidate.keywords, tags=topics)


def _similar(knowledge_id: UUID, candidate: Candidate, other: Neighbour) -> Link:
    reason = similarity_reason(terms_of(candidate.content, candidate), terms_of(other.content, candidate))
    return Link(knowledge_id, other.knowledge_id, SIMILAR, other.similarity, reason)


def _corrections(ruling: Ruling, thoughts: Mapping[int, Thought]) -> Iterator[Link]:
    is_correction = thoughts[ruling.ordinal].candidate.kind == "correction"
    if is_correction and ruling.new_id and ruling.old_id and ruling.decision is not Decision.COEXIST:
        yield Link(ruling.new_id, ruling.old_id, CORRECTS, 1.0, ruling.reason)


def _digest(content: str) -> bytes:
    return hashlib.sha256(content.encode("utf-8")).digest()
