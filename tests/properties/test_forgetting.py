"""Whatever is said in whatever order, and whatever a model decides: one live truth, nothing lost, weights in 0..1."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from memoryos_pipeline.domain import forgetting
from memoryos_pipeline.domain.conflicts import plan_merge
from memoryos_pipeline.domain.ids import derive_id
from memoryos_pipeline.domain.knowledge import Candidate, Decision, Verdict
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.domain.truths import Claim, Scene, Truth

START = datetime(2026, 1, 1, tzinfo=UTC)

statements = st.tuples(
    st.integers(0, 6), st.sampled_from([None, "residence", "job"]), st.integers(0, 30),
    st.sampled_from(["fact", "assistant_kb"]), st.sampled_from(list(Decision)), st.integers(0, 50), st.booleans(),
)  # fmt: skip
pages = st.lists(st.lists(statements, min_size=1, max_size=4), min_size=1, max_size=8)


def _apply(rows: dict[UUID, Truth], page_number: int, page: list[tuple]) -> None:
    live = [row.knowledge_id for row in rows.values() if row.is_live]
    claims, verdicts = [], []
    for ordinal, (value, slot, day, kind, decision, pick, late) in enumerate(page):
        candidate = Candidate(
            kind=kind, content=f"{slot} is {value}", lang="en", actor="Maya", source_seqs=(1,),
            turn_at=START + timedelta(days=day), importance=0.5, slot=slot,
        )  # fmt: skip
        offered = [*live, *(earlier.knowledge_id for earlier in claims)]
        target = offered[pick % len(offered)] if offered else None
        chosen = decision if target else Decision.ADD
        knowledge_id = derive_id("property", page_number, ordinal)
        claims.append(Claim(ordinal, knowledge_id, candidate, frozenset(offered)))
        verdicts.append(Verdict(chosen, target, arrived_late=late and target is not None))
    plan = plan_merge(claims, verdicts, Scene(tuple(rows.values()), len(live), START, DEFAULT))
    for row in [row for _, row in plan.added] + list(plan.changed):
        rows[row.knowledge_id] = row
    covered = {ordinal for ordinal, _ in plan.added} | {ordinal for _, ordinal in plan.supported}
    assert covered == set(range(len(page)))


def _check(rows: dict[UUID, Truth]) -> None:
    live = [row for row in rows.values() if row.is_live]
    assert max(Counter(row.lineage_id for row in live).values(), default=0) <= 1
    assert max(Counter(row.slot for row in live if row.slot).values(), default=0) <= 1
    assert max(Counter((row.kind, row.content_key) for row in live).values(), default=0) <= 1
    assert max(Counter((row.lineage_id, row.version) for row in rows.values()).values()) == 1
    for row in rows.values():
        assert row.valid_to is None or row.valid_to >= row.valid_from
        assert row.is_live == (row.superseded_by is None)
        assert _end(rows, row).is_live


def _end(rows: dict[UUID, Truth], row: Truth) -> Truth:
    """Follow what superseded a row; a cycle would visit a row twice."""
    seen = set()
    while row.superseded_by is not None:
        assert row.knowledge_id not in seen
        seen.add(row.knowledge_id)
        row = rows[row.superseded_by]
    return row


class TestPlans:
    @given(pages)
    @settings(max_examples=400, deadline=None)
    def test_any_verdicts_keep_one_live_truth(self, told: list[list[tuple]]) -> None:
        """One live row a lineage, a slot and a statement; every claim lands; every retired row leads to a live one."""
        rows: dict[UUID, Truth] = {}
        for number, page in enumerate(told):
            _apply(rows, number, page)
            _check(rows)


class TestLaw:
    @given(st.floats(0.01, 5000), st.floats(0.001, 1), st.floats(0.001, 1), st.floats(-100, 100_000))
    def test_weight_and_end_agree(self, strength: float, w0: float, theta: float, days: float) -> None:
        """The weight stays in 0..1, never grows with time, and is at the threshold when forgetting is due."""
        now = START + timedelta(days=days)
        weight = forgetting.weight(now, START, strength_days=strength, w0=w0)
        later = forgetting.weight(now + timedelta(days=1), START, strength_days=strength, w0=w0)
        assert 0.0 <= later <= weight <= 1.0
        end = forgetting.forget_at(START, strength_days=strength, forget_below=theta, w0=w0)
        assert end is not None
        assert end >= START
        if w0 > theta and days > 0:
            assert (now >= end) == (weight <= theta) or abs((now - end).total_seconds()) < 1
