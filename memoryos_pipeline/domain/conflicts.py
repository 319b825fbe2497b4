"""What becomes of new statements beside what is known: verdicts in, row changes out. Pure.

A model decides, the rules here bound what its decision can do. Truth is ordered by when things were said, never by
when they arrived; whatever retires a row is stored beside it; and a page retires only so much.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from memoryos_pipeline.domain import forgetting
from memoryos_pipeline.domain.errors import InvalidOutputError
from memoryos_pipeline.domain.knowledge import Decision, Verdict
from memoryos_pipeline.domain.policies import Resolution
from memoryos_pipeline.domain.truths import Claim, Plan, Ruling, Scene, Status, Truth

RETIRE_SHARE = 0.05
RETIRE_MIN_ROWS = 5
RETIRE_MAX_ROWS = 25
"""One page may retire this share of a scope's live rows, but at least the minimum and at most the maximum."""


def retire_cap(live_rows: int) -> int:
    """Return how many live rows one page may retire."""
    return min(RETIRE_MAX_ROWS, max(RETIRE_MIN_ROWS, math.ceil(RETIRE_SHARE * live_rows)))


def plan_merge(claims: Sequence[Claim], verdicts: Sequence[Verdict], scene: Scene) -> Plan:
    """Apply verdicts in the order things were said. Raises InvalidOutputError when one names what was not offered."""
    if len(claims) != len(verdicts):
        message = f"{len(verdicts)} verdicts for {len(claims)} candidates"
        raise InvalidOutputError(message)
    for claim, verdict in zip(claims, verdicts, strict=True):
        _check(claim, verdict)
    desk = _Desk(scene)
    order = sorted(zip(claims, verdicts, strict=True), key=lambda pair: _said(pair[0]))
    for claim, verdict in order:
        desk.decide(claim, verdict)
    return desk.plan()


def settle_restored(row: Truth, rivals: Sequence[Truth]) -> list[Truth]:
    """Return the rows as they are once `row` is back: of it and the live rivals, what was said last stays live."""
    newest = max([row, *rivals], key=lambda each: (each.asserted_at, each is not row))
    if newest is not row:
        ends = max(newest.valid_from, row.valid_from)
        return [_retired(row, "superseded", by=newest.knowledge_id, at=ends, reason="told again while forgotten")]
    restored = replace(row, status="active", valid_to=None, superseded_by=None, close_reason=None)
    beaten = [
        _retired(each, "superseded", by=row.knowledge_id, at=row.valid_from, reason="restored") for each in rivals
    ]
    return [restored, *beaten]


def in_mode(mode: Resolution, verdict: Verdict) -> Verdict:
    """Return what a verdict comes to under a mode of resolution.

    `ops` takes it as it is. `merge` makes one line of what contradicts itself: nothing is closed, only replaced.
    `additive` and `append` retire nothing: what differs stands beside what is known.
    """
    if mode == "merge" and verdict.decision is Decision.CLOSE:
        return replace(verdict, decision=Decision.UPDATE)
    if mode in {"additive", "append"} and verdict.decision is not Decision.NOOP:
        return replace(verdict, decision=Decision.COEXIST, reason=verdict.reason or f"{mode}: nothing is retired")
    return verdict


def _said(claim: Claim) -> tuple[datetime, int]:
    return claim.candidate.turn_at, claim.ordinal


def _check(claim: Claim, verdict: Verdict) -> None:
    needs_target = verdict.decision in {Decision.UPDATE, Decision.CLOSE, Decision.NOOP}
    if needs_target and verdict.neighbour_id is None:
        message = f"{verdict.decision} of candidate {claim.ordinal} names no neighbour"
        raise InvalidOutputError(message)
    if verdict.neighbour_id is not None and verdict.neighbour_id not in claim.offered:
        message = f"{verdict.decision} of candidate {claim.ordinal} names knowledge it was not shown"
        raise InvalidOutputError(message)


def _retired(row: Truth, status: Status, *, by: UUID, at: datetime, reason: str) -> Truth:
    return replace(row, status=status, valid_to=max(at, row.valid_from), superseded_by=by, close_reason=reason)


class _Desk:
    """The rows concerned while a page is worked through."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._before = {row.knowledge_id: row for row in scene.truths}
        self._rows = dict(self._before)
        self._added: dict[UUID, int] = {}
        self._stands_for: dict[UUID, UUID] = {}
        self._supported: list[tuple[UUID, int]] = []
        self._reinforced: list[UUID] = []
        self._rulings: list[Ruling] = []
        self._ruled = dict(self._before)

    def plan(self) -> Plan:
        """Return the difference to how it was."""
        added = [(ordinal, self._rows[row_id]) for row_id, ordinal in self._added.items()]
        changed = [row for row_id, row in self._rows.items() if self._before.get(row_id, row) != row]
        ended = [row for row in changed if self._before[row.knowledge_id].is_live and not row.is_live]
        return Plan(
            added=tuple(added),
            changed=tuple(changed),
            retired=(*ended, *(row for _, row in added if not row.is_live)),
            supported=tuple(self._supported),
            reinforced=tuple(dict.fromkeys(self._reinforced)),
            rulings=tuple(self._rulings),
        )

    def decide(self, claim: Claim, verdict: Verdict) -> None:
        """Bring one claim in."""
        copy = self._live_copy(claim)
        target = self._head(verdict.neighbour_id) if verdict.neighbour_id else None
        if claim.knowledge_id in self._rows:
            return
        if copy is not None:
            self._support(claim, copy, "same statement")
            self._close_beside(claim, verdict, target)
        elif verdict.decision is Decision.NOOP and target is not None:
            self._support(claim, target, verdict.reason or "known already")
        else:
            self._bring_in(claim, verdict, target)

    def _bring_in(self, claim: Claim, verdict: Verdict, target: Truth | None) -> None:
        verdict = in_mode(self._scene.policy.resolution, verdict)
        retires = verdict.decision in {Decision.UPDATE, Decision.CLOSE}
        occupant = self._occupant(claim.candidate.slot)
        if verdict.decision is Decision.COEXIST:
            self._yield_slot(claim, occupant)
            self._coexist(claim, target, verdict.reason or "both stand")
            return
        rivals = _distinct([target if retires else None, *self._contradicted(claim)])
        if not rivals:
            self._add(claim, Decision.ADD, verdict.reason or "new")
        elif self._is_assistants_word(claim, rivals):
            self._coexist(claim, rivals[0], "the assistant's words retire nothing a user said")
        elif newer := self._newer(claim, rivals, arrived_late=verdict.arrived_late):
            self._add_as_history(claim, newer, verdict)
        elif self._breaks_cap(rivals):
            self._coexist(claim, rivals[0], f"damage cap: {verdict.decision} not applied")
        else:
            self._replace(claim, rivals, verdict, closed=target)

    def _close_beside(self, claim: Claim, verdict: Verdict, target: Truth | None) -> None:
        """End what a repeated statement contradicts: the statement itself is stored already."""
        copy = self._live_copy(claim)
        verdict = in_mode(self._scene.policy.resolution, verdict)
        if verdict.decision not in {Decision.UPDATE, Decision.CLOSE} or target is None or copy is None:
            return
        if target.knowledge_id == copy.knowledge_id or self._newer(claim, [target], arrived_late=verdict.arrived_late):
            return
        if self._is_assistants_word(claim, [target]) or self._breaks_cap([target]):
            return
        reason = verdict.reason or "contradicted again"
        by, at = copy.knowledge_id, claim.candidate.turn_at
        self._rows[target.knowledge_id] = _retired(target, "closed", by=by, at=at, reason=reason)
        self._rule(claim, Decision.CLOSE, reason, new_id=by, old_id=target.knowledge_id)

    def _replace(self, claim: Claim, rivals: Sequence[Truth], verdict: Verdict, *, closed: Truth | None) -> None:
        closes = verdict.decision is Decision.CLOSE
        reason = verdict.reason or "replaced"
        at = claim.candidate.turn_at
        successor_of: Truth | None = None
        for rival in rivals:
            is_closed = closes and (rival is closed or not _shares_slot(rival, claim))
            status: Status = "closed" if is_closed else "superseded"
            self._rows[rival.knowledge_id] = _retired(rival, status, by=claim.knowledge_id, at=at, reason=reason)
            starts_anew = is_closed and not _shares_slot(rival, claim)
            successor_of = successor_of or (None if starts_anew else rival)
        decision = Decision.CLOSE if closes else Decision.UPDATE
        self._store(claim, self._new_row(claim, successor_of))
        self._rule(claim, decision, reason, new_id=claim.knowledge_id, old_id=rivals[0].knowledge_id)

    def _add(self, claim: Claim, decision: Decision, reason: str) -> None:
        self._store(claim, self._new_row(claim, None))
        self._rule(claim, decision, reason, new_id=claim.knowledge_id)

    def _yield_slot(self, claim: Claim, occupant: Truth | None) -> None:
        """Of two rows that both stand, the one said last answers for the slot from now on."""
        if occupant is not None and occupant.asserted_at <= claim.candidate.turn_at:
            self._rows[occupant.knowledge_id] = replace(occupant, slot=None)

    def _coexist(self, claim: Claim, beside: Truth | None, reason: str) -> None:
        row = self._new_row(claim, None)
        if self._occupant(row.slot):
            row = replace(row, slot=None)
        self._store(claim, row)
        old_id = beside.knowledge_id if beside else None
        self._rule(claim, Decision.COEXIST, reason, new_id=claim.knowledge_id, old_id=old_id)

    def _add_as_history(self, claim: Claim, newer: Truth, verdict: Verdict) -> None:
        """Store what was said earlier than the truth it meets, already retired; it retires nothing live."""
        closes = verdict.decision is Decision.CLOSE
        starts_anew = closes and not _shares_slot(newer, claim)
        starts = _starts_before(claim, newer)
        versions = [] if starts_anew else self._history(newer.lineage_id)
        earlier = [row for row in versions if row.valid_from <= starts]
        same = [row for row in earlier[-1:] if _same(row, claim)]
        reason = verdict.reason or "said before what is known now"
        if same:
            self._support(claim, same[0], reason)
            return
        later = next((row for row in versions if row.valid_from > starts), newer)
        ends = later.valid_from if later.valid_from >= starts else later.asserted_at
        row = self._new_row(claim, None if starts_anew else newer, carries=False)
        row = replace(row, valid_from=starts)
        status: Status = "closed" if closes else "superseded"
        self._trim(earlier[-1:], followed_by=later.knowledge_id, at=starts, by=claim.knowledge_id)
        self._store(claim, _retired(row, status, by=later.knowledge_id, at=ends, reason=reason))
        decision = Decision.CLOSE if closes else Decision.UPDATE
        self._rule(claim, decision, f"arrived late: {reason}", new_id=claim.knowledge_id, old_id=newer.knowledge_id)

    def _trim(self, rows: Iterable[Truth], *, followed_by: UUID, at: datetime, by: UUID) -> None:
        """End a retired version where one that arrived late comes between it and what followed it."""
        for row in rows:
            if row.superseded_by == followed_by and row.valid_to is not None and row.valid_to > at:
                self._rows[row.knowledge_id] = replace(row, valid_to=at, superseded_by=by)

    def _support(self, claim: Claim, row: Truth, reason: str) -> None:
        """Take a claim as one more source of a row: it may date it earlier, and reinforces it once an hour."""
        said_at = claim.candidate.turn_at
        row = self._dated_back(row, said_at)
        row = replace(row, asserted_at=max(row.asserted_at, said_at))
        if self._reinforces(claim, row):
            row = self._stronger(row)
            self._reinforced.append(row.knowledge_id)
        self._rows[row.knowledge_id] = row
        self._stands_for[claim.knowledge_id] = row.knowledge_id
        self._supported.append((row.knowledge_id, claim.ordinal))
        self._rule(claim, Decision.NOOP, reason, new_id=None, old_id=row.knowledge_id)

    def _dated_back(self, row: Truth, said_at: datetime) -> Truth:
        between = [
            other
            for other in self._history(row.lineage_id)
            if other.knowledge_id != row.knowledge_id and said_at <= other.valid_from < row.valid_from
        ]
        if said_at >= row.valid_from or between:
            return row
        before = [other for other in self._history(row.lineage_id) if other.valid_from < said_at]
        self._trim(before[-1:], followed_by=row.knowledge_id, at=said_at, by=row.knowledge_id)
        return replace(row, valid_from=said_at)

    def _reinforces(self, claim: Claim, row: Truth) -> bool:
        echo = claim.candidate.kind == "assistant_kb" and row.kind != "assistant_kb"
        stored = row.knowledge_id in self._before
        return stored and row.is_live and not echo and forgetting.is_new_hour(row.last_reinforced_at, self._scene.now)

    def _stronger(self, row: Truth) -> Truth:
        strength = forgetting.strengthened(row.strength_days, self._scene.policy)
        return replace(row, strength_days=strength, last_reinforced_at=self._scene.now)

    def _new_row(self, claim: Claim, successor_of: Truth | None, *, carries: bool = True) -> Truth:
        """Make a live row: a new lineage, or the next version of one; a successor keeps pin, weight and strength."""
        candidate, policy = claim.candidate, self._scene.policy
        carried = successor_of if carries else None
        return Truth(
            knowledge_id=claim.knowledge_id,
            lineage_id=successor_of.lineage_id if successor_of else claim.knowledge_id,
            version=self._next_version(successor_of),
            kind=candidate.kind,
            content_key=claim.content_key,
            slot=candidate.slot,
            asserted_at=candidate.turn_at,
            valid_from=candidate.turn_at,
            valid_to=None,
            status="active",
            superseded_by=None,
            close_reason=None,
            importance=max(candidate.importance, carried.importance if carried else 0.0),
            strength_days=max(policy.strength_days, carried.strength_days if carried else 0.0),
            last_reinforced_at=self._scene.now,
            pinned_at=carried.pinned_at if carried else None,
        )

    def _next_version(self, successor_of: Truth | None) -> int:
        if successor_of is None:
            return 1
        lineage = successor_of.lineage_id
        return 1 + max(row.version for row in self._rows.values() if row.lineage_id == lineage)

    def _store(self, claim: Claim, row: Truth) -> None:
        self._rows[claim.knowledge_id] = row
        self._added[claim.knowledge_id] = claim.ordinal

    def _rule(
        self, claim: Claim, decision: Decision, reason: str, *, new_id: UUID | None, old_id: UUID | None = None
    ) -> None:  # fmt: skip
        changed = tuple(
            (before, self._rows[row_id]) for row_id, before in self._ruled.items() if self._rows[row_id] != before
        )
        added = self._rows[claim.knowledge_id] if new_id == claim.knowledge_id else None
        source = (old_id, claim.candidate.source_seqs) if decision is Decision.NOOP and old_id else None
        self._rulings.append(Ruling(claim.ordinal, decision, reason, new_id, old_id, changed, added, source))
        self._ruled = dict(self._rows)

    def _head(self, knowledge_id: UUID) -> Truth | None:
        """Return the live row that stands where a neighbour stood: this very page may have replaced it."""
        row = self._rows.get(self._stands_for.get(knowledge_id, knowledge_id))
        while row is not None and not row.is_live:
            ended, row = row, self._rows.get(row.superseded_by) if row.superseded_by else None
            if ended.status == "closed" and row is not None and row.lineage_id != ended.lineage_id:
                return None  # what ended it says something else
        return row

    def _live_copy(self, claim: Claim) -> Truth | None:
        return next((row for row in self._rows.values() if row.is_live and _same(row, claim)), None)

    def _contradicted(self, claim: Claim) -> list[Truth]:
        rows = [row for row in self._rows.values() if row.is_live and claim.contradicts(row.slot)]
        return sorted(rows, key=lambda row: (row.slot != claim.candidate.slot, row.knowledge_id))

    def _occupant(self, slot: str | None) -> Truth | None:
        if slot is None:
            return None
        return next((row for row in self._rows.values() if row.is_live and row.slot == slot), None)

    def _history(self, lineage_id: UUID) -> list[Truth]:
        """Return the versions of a lineage that are not forgotten, in the order they were true."""
        versions = [r for r in self._rows.values() if r.lineage_id == lineage_id and r.status != "forgotten"]
        return sorted(versions, key=lambda row: (row.valid_from, row.version))

    def _newer(self, claim: Claim, rivals: Sequence[Truth], *, arrived_late: bool) -> Truth | None:
        said_at = claim.candidate.turn_at
        newer = [row for row in rivals if row.asserted_at > said_at]
        return next(iter(newer), rivals[0] if arrived_late else None)

    def _breaks_cap(self, rivals: Sequence[Truth]) -> bool:
        retired = [r for r_id, r in self._before.items() if r.is_live and not self._rows[r_id].is_live]
        more = [row for row in rivals if row.knowledge_id in self._before]
        return bool(more) and len(retired) + len(more) > retire_cap(self._scene.live_rows)

    def _is_assistants_word(self, claim: Claim, rivals: Sequence[Truth]) -> bool:
        return claim.candidate.kind == "assistant_kb" and any(row.kind != "assistant_kb" for row in rivals)


def _distinct(rows: Iterable[Truth | None]) -> list[Truth]:
    return list({row.knowledge_id: row for row in rows if row is not None}.values())


def _same(row: Truth, claim: Claim) -> bool:
    return row.kind == claim.candidate.kind and row.content_key == claim.content_key


def _shares_slot(row: Truth, claim: Claim) -> bool:
    return row.slot is not None and row.slot == claim.candidate.slot


def _starts_before(claim: Claim, newer: Truth) -> datetime:
    """Return since when a late claim held: when it was said, or before the newer truth when only the event is older."""
    said_at = claim.candidate.turn_at
    if said_at < newer.asserted_at:
        return said_at
    return min(claim.candidate.event_at or newer.valid_from, newer.valid_from)
