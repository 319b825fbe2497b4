"""Two sessions meet over the same rows, in every order of their steps: each order keeps the promise."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, count
from uuid import UUID

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.errors import ErasedScopeError, FencedError, TurnConflictError
from memoryos_pipeline.domain.ids import conversation_id, mint_id, page_id, scope_id
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.turns import NewTurn, Receipt
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.stages.advance import advance
from memoryos_pipeline.stages.apply_heat import apply_heat
from memoryos_pipeline.stages.embed import embed, embed_together
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.stages.record_access import record_access
from memoryos_pipeline.stages.record_turns import record_turns
from memoryos_pipeline.stages.set_policy import put_policy
from memoryos_pipeline.stages.summarize_page import summarize_page
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.erasure import erase_user
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.ledger import complete, owe
from memoryos_pipeline.store.policies import PolicyRow
from memoryos_pipeline.store.publishing import pick_due, reap_expired
from memoryos_pipeline.store.vectors import ensure_space
from tests.builders import START, create_scope, rows
from tests.conftest import Stack
from tests.doubles import HashtagModel
from tests.interleavings import Ended, Pair, Session, run_all_orders, statements_with

FIND_WORK = text("select work_id from memoryos.work where tenant_id = :tenant_id and subject_key = any(:subjects)")
OVERDUE = text("""
    update memoryos.work set lease_until = clock_timestamp() - interval '1 second'
     where tenant_id = :tenant_id and work_id = :work_id
""")
SPENT = text("update memoryos.work set attempts = max_attempts where tenant_id = :tenant_id and work_id = :work_id")
STATE = "select state, fence, attempts, generation from memoryos.work where work_id = :work_id"
COUNT_EVENTS = "select count(*) from memoryos.event where subject_id = :subject"
BREAK_CHAIN = text("update memoryos.page set chain_id = null, meta_summary = null where page_id <> :page_id")
WARM = text("""
    update memoryos.page
       set assigned_at = memoryos.now(), extract_ordinal = first_seq, extracted_at = memoryos.now(),
           knowledge_count = 0, extracted_by = 'nobody', sealed_at = memoryos.now() - interval '90 days',
           heat = 0.5, heat_at = memoryos.now() - interval '2 days',
           cools_at = memoryos.now() + case when page_id = :cold then interval '-1 hour' else interval '9 days' end
     where scope_id = :scope
""")
ONE_EACH = Policy(hot_capacity_turns=1, page_size_turns=1)
"""Every turn but the last is sealed at once, alone on its page."""
LOCKS_AND_ENDS = statements_with("for no key update", "update memoryos.work", "commit")
OWES_AND_ENDS = statements_with("insert into memoryos.work", "update memoryos.work")
ERASES = statements_with("for update", "delete from memoryos.scope", "commit")


@dataclass
class Ground:
    """Fresh rows for one order: a user, a scope, and work of theirs."""

    stack: Stack
    user: str
    scope: UUID
    work_ids: list[int] = field(default_factory=list)
    leases: list[Lease] = field(default_factory=list)

    @property
    def tenant_id(self) -> UUID:
        return self.stack.tenant_id

    def state(self, work_id: int) -> tuple[str, int, int, int]:
        """Return state, fence, attempts and generation."""
        found: tuple[str, int, int, int] = rows(self.stack, STATE, work_id=work_id)[0]
        return found

    def record(self, database: Database, *names: str, body: str = "said") -> list[Receipt]:
        """Record one turn for each `conversation/client_turn_id`."""
        turns = [_turn(self.user, name, body) for name in names]
        return record_turns(database, self.tenant_id, turns, policy=ONE_EACH, max_attempts=5)

    def turns(self, conversation: str) -> list[tuple[str, int]]:
        """Return client_turn_id and seq of what is recorded, by seq."""
        query = "select client_turn_id, seq from memoryos.turn where conversation_id = :id order by seq"
        return rows(self.stack, query, id=conversation_id(self.scope, conversation))


def _turn(user: str, name: str, body: str) -> NewTurn:
    conversation, client_turn_id = name.split("/")
    return NewTurn(
        user_id=user, agent_id="other" if conversation == "other" else "companion",
        conversation_id=conversation, client_turn_id=client_turn_id, role="user",
        speaker=user, content=f"{body} in {conversation}", occurred_at=START, kind="normal",
    )  # fmt: skip


@dataclass
class Grounds:
    """Makes one ground after the other, no two over the same rows."""

    stack: Stack
    subjects: tuple[str, ...] = ()
    numbers: Iterator[int] = field(default_factory=count)

    def skip_until(self, fits: Callable[[UUID], bool]) -> None:
        """Leave out users whose memory does not fit."""
        for number in self.numbers:
            if fits(scope_id(self.stack.tenant_id, f"user-{number}", "companion")):
                self.numbers = chain([number], self.numbers)
                return

    def owed(self) -> Ground:
        """Return a ground whose subjects are owed."""
        user = f"user-{next(self.numbers)}"
        ground = Ground(self.stack, user, create_scope(self.stack, user))
        names = [f"{user}:{subject}" for subject in self.subjects]
        with self.stack.app.transaction(self.stack.tenant_id) as connection:
            owed = [Owed(WorkKind.HEAT, name, ground.scope) for name in names]
            owe(connection, self.stack.tenant_id, owed)
            values = {"tenant_id": self.stack.tenant_id, "subjects": names}
            ground.work_ids = sorted(connection.execute(FIND_WORK, values).scalars())
        return ground

    def leased(self) -> Ground:
        """Return a ground whose subjects are leased."""
        ground = self.owed()
        ground.leases = self.stack.ledger.claim(ground.work_ids, owner="before", lease_seconds=60)
        return ground

    def overdue(self) -> Ground:
        """Return a ground whose leases ran out a moment ago."""
        ground = self.leased()
        with self.stack.app.transaction(self.stack.tenant_id) as connection:
            for lease in ground.leases:
                connection.execute(OVERDUE, {"tenant_id": ground.tenant_id, "work_id": lease.work_id})
        return ground

    def spent(self) -> Ground:
        """Return a ground whose leases ran out with the last attempt."""
        ground = self.overdue()
        with self.stack.app.transaction(self.stack.tenant_id) as connection:
            for lease in ground.leases:
                connection.execute(SPENT, {"tenant_id": ground.tenant_id, "work_id": lease.work_id})
        return ground


def _claim(session: Session, ground: Ground) -> list[Lease]:
    return session.ledger.claim(ground.work_ids, owner=session.name, lease_seconds=60)


def _reap(session: Session, _: Ground) -> int:
    with session.ledger_database.across_tenants() as connection:
        return reap_expired(connection)


def _complete_with_effect(session: Session, ground: Ground) -> str:
    lease = ground.leases[0]
    with session.app.transaction(ground.tenant_id) as connection:
        record_events(connection, ground.tenant_id, [Event("page_pinned", ground.scope, subject_id=ground.scope)])
        complete(connection, lease)
    return "done"


class TestClaims:
    def test_two_workers_share_rows_without_a_rest(self, stack: Stack) -> None:
        """Both were rung for the same rows: each row has one owner, one attempt, and none is left lying."""

        def check(ground: Ground, ended: Ended) -> None:
            leases = [*ended.first, *ended.second]
            assert sorted(lease.work_id for lease in leases) == ground.work_ids
            assert [ground.state(work_id)[:3] for work_id in ground.work_ids] == [("leased", 1, 1)] * 2

        grounds = Grounds(stack, ("one", "two"))
        assert run_all_orders(stack, Pair(grounds.owed, _claim, _claim, check)) >= 10

    def test_two_relays_ring_once_and_never_wait(self, stack: Stack) -> None:
        """Whoever comes second passes over what the first has in hand."""

        def pick(session: Session, _: Ground) -> list[int]:
            with session.ledger_database.across_tenants() as connection:
                picked = pick_due(connection, "heat", room=10, share=100, stale_seconds=30)
            return [work_id for work_ids in picked.values() for work_id in work_ids]

        def check(ground: Ground, ended: Ended) -> None:
            assert sorted([*ended.first, *ended.second]) == ground.work_ids
            assert not ended.first_waited
            assert not ended.second_waited

        grounds = Grounds(stack, ("one", "two"))
        assert run_all_orders(stack, Pair(grounds.owed, pick, pick, check)) == 6

    def test_a_claim_meets_the_reaper(self, stack: Stack) -> None:
        """A lease that ran out goes to the claimant, or is rung for again; the attempts are all counted."""

        def check(ground: Ground, ended: Ended) -> None:
            state, fence, attempts, _ = ground.state(ground.work_ids[0])
            owner = [(lease.fence, lease.attempts) for lease in ended.first]
            assert (state, owner) in [("leased", [(2, 2)]), ("ready", [])]
            assert (fence, attempts) == (owner or [(1, 1)])[0]

        assert run_all_orders(stack, Pair(Grounds(stack, ("one",)).overdue, _claim, _reap, check)) >= 6

    def test_nobody_claims_what_the_reaper_buries(self, stack: Stack) -> None:
        """The last attempt is over: the row is dead with its reason, whoever asks for it at the same time."""

        def check(ground: Ground, ended: Ended) -> None:
            assert ended.first == []
            assert ground.state(ground.work_ids[0])[0] == "dead"
            letters = "select error_class from memoryos.dead_letter where work_id = :id"
            assert rows(stack, letters, id=ground.work_ids[0]) == [("lease_expired",)]

        assert run_all_orders(stack, Pair(Grounds(stack, ("one",)).spent, _claim, _reap, check)) >= 6


class TestCompletion:
    @pytest.mark.parametrize("last_attempt", [False, True])
    def test_a_late_completion_meets_the_reaper(self, stack: Stack, last_attempt: bool) -> None:
        """Effect and completion come together or not at all, and the reaper waits for no worker."""

        def check(ground: Ground, ended: Ended) -> None:
            state = ground.state(ground.work_ids[0])[0]
            effects = rows(stack, COUNT_EVENTS, subject=ground.scope)[0][0]
            if ended.first == "done":
                assert (state, effects) == ("done", 1)
            else:
                assert isinstance(ended.first, FencedError)
                assert (state, effects) == ("dead" if last_attempt else "ready", 0)
            assert not ended.second_waited

        grounds = Grounds(stack, ("one",))
        prepare = grounds.spent if last_attempt else grounds.overdue
        assert run_all_orders(stack, Pair(prepare, _complete_with_effect, _reap, check)) >= 8

    def test_a_late_completion_meets_the_next_owner(self, stack: Stack) -> None:
        """A lease ran out: the effect is written once, by whoever holds the row in the end."""

        def claim_and_complete(session: Session, ground: Ground) -> str:
            leases = _claim(session, ground)
            if not leases:
                return "nothing"
            return _complete_with_effect(session, Ground(stack, ground.user, ground.scope, leases=leases))

        def check(ground: Ground, ended: Ended) -> None:
            assert rows(stack, COUNT_EVENTS, subject=ground.scope) == [(1,)]
            assert ground.state(ground.work_ids[0])[0] == "done"
            assert [ended.first, ended.second].count("done") == 1

        pair = Pair(Grounds(stack, ("one",)).overdue, _complete_with_effect, claim_and_complete, check)
        assert run_all_orders(stack, pair) >= 20

    def test_a_wake_up_meets_the_completion(self, stack: Stack) -> None:
        """What was written after a worker looked makes its row run again, wherever the two commits fall."""

        def look_and_complete(session: Session, ground: Ground) -> int:
            with session.app.transaction(ground.tenant_id) as connection:
                seen: int = connection.execute(text(COUNT_EVENTS), {"subject": ground.scope}).scalar_one()
                complete(connection, ground.leases[0])
            return seen

        def write_and_owe(session: Session, ground: Ground) -> None:
            with session.app.transaction(ground.tenant_id) as connection:
                told = Event("page_pinned", ground.scope, subject_id=ground.scope)
                record_events(connection, ground.tenant_id, [told])
                owe(connection, ground.tenant_id, [Owed(WorkKind.HEAT, ground.leases[0].subject_key, ground.scope)])

        def check(ground: Ground, ended: Ended) -> None:
            state, _, _, generation = ground.state(ground.work_ids[0])
            assert generation == 2
            assert state == "ready" or ended.first == 1

        pair = Pair(Grounds(stack, ("one",)).leased, look_and_complete, write_and_owe, check)
        assert run_all_orders(stack, pair) >= 10


class TestIngest:
    @pytest.mark.parametrize("exists", [False, True])
    def test_two_requests_number_one_conversation(self, stack: Stack, exists: bool) -> None:
        """Two turns get two numbers without a gap, in a conversation that is new to both or known."""
        first_seq = 2 if exists else 1

        def prepare() -> Ground:
            ground = grounds.owed()
            if exists:
                ground.record(stack.app, "c1/before")
            return ground

        def check(ground: Ground, ended: Ended) -> None:
            seqs = sorted(receipt.seq for receipt in [*ended.first, *ended.second])
            assert seqs == [first_seq, first_seq + 1]
            assert [seq for _, seq in ground.turns("c1")] == list(range(1, first_seq + 2))

        grounds = Grounds(stack)
        pair = Pair(prepare, lambda s, g: g.record(s.app, "c1/a"), lambda s, g: g.record(s.app, "c1/b"), check)
        assert run_all_orders(stack, pair) >= 6

    def test_a_turn_that_is_sent_twice_at_once_is_one(self, stack: Stack) -> None:
        """Both senders get the same number and position, and one of them is told that it was a repeat."""

        def check(ground: Ground, ended: Ended) -> None:
            (one,), (other,) = ended.first, ended.second
            assert (one.seq, one.position) == (other.seq, other.position)
            assert {one.duplicate, other.duplicate} == {False, True}
            assert ground.turns("c1") == [("a", 1)]

        def send(session: Session, ground: Ground) -> list[Receipt]:
            return ground.record(session.app, "c1/a")

        assert run_all_orders(stack, Pair(Grounds(stack).owed, send, send, check)) >= 6

    def test_one_key_with_two_bodies_is_one_turn_and_one_conflict(self, stack: Stack) -> None:
        """Whoever commits first is kept; the other is refused and leaves nothing, not even beside it."""

        def check(ground: Ground, ended: Ended) -> None:
            outcomes = [type(each) for each in (ended.first, ended.second)]
            assert sorted(outcome.__name__ for outcome in outcomes) == ["TurnConflictError", "list"]
            kept = "b" if isinstance(ended.first, TurnConflictError) else "a"
            assert sorted(ground.turns("c1")) == sorted([("key", 1), (kept, 2)])

        pair = Pair(
            Grounds(stack).owed,
            lambda session, ground: ground.record(session.app, "c1/key", "c1/a"),
            lambda session, ground: ground.record(session.app, "c1/key", "c1/b", body="other"),
            check,
        )
        assert run_all_orders(stack, pair) >= 6

    def test_two_conversations_in_opposite_orders(self, stack: Stack) -> None:
        """Nobody is refused, and both conversations have two turns."""

        def check(ground: Ground, ended: Ended) -> None:
            assert [len(each) for each in (ended.first, ended.second)] == [2, 2]
            assert [[seq for _, seq in ground.turns(name)] for name in ("c1", "c2")] == [[1, 2], [1, 2]]

        pair = Pair(
            Grounds(stack).owed,
            lambda session, ground: ground.record(session.app, "c1/a", "c2/a"),
            lambda session, ground: ground.record(session.app, "c2/b", "c1/b"),
            check,
        )
        assert run_all_orders(stack, pair) >= 6

    def test_a_new_turn_meets_the_sealing_of_the_ones_before(self, stack: Stack) -> None:
        """A turn that comes while its conversation is advanced is sealed with it, or wakes it again."""

        def prepare() -> Ground:
            ground = grounds.owed()
            ground.record(stack.app, "c1/1", "c1/2")
            ground.leases = _claim_subject(stack, str(conversation_id(ground.scope, "c1")))
            return ground

        def check(ground: Ground, ended: Ended) -> None:
            assert not isinstance(ended.first, Exception)
            assert not isinstance(ended.second, Exception)
            query = "select next_seq - 1 - sealed_through from memoryos.conversation where scope_id = :scope"
            unsealed = rows(stack, query, scope=ground.scope)[0][0]
            assert unsealed == 1 or ground.state(ground.leases[0].work_id)[0] == "ready"

        grounds = Grounds(stack)
        pair = Pair(
            prepare,
            lambda session, ground: ground.record(session.app, "c1/3"),
            lambda session, ground: advance(_parts(session.app), ground.leases[0]),
            check,
            second_counts=statements_with("for no key update", "from memoryos.turn", "update memoryos.work", "commit"),
        )
        assert run_all_orders(stack, pair) >= 6


class TestErasure:
    @pytest.mark.parametrize(
        ("stage", "subject"),
        [(summarize_page, "{page}"), (embed, "turns:{page}"), (embed, "summary:{page}")],
        ids=["summarize", "embed turns", "embed summary"],
    )
    def test_an_erasure_meets_a_stage(self, stack: Stack, stage: Callable[[Parts, Lease], None], subject: str) -> None:
        """Nothing of the user is left, and the stage ends by itself or learns that its lease is gone."""

        def prepare() -> Ground:
            ground = grounds.owed()
            name = subject.format(page=_summarized_page(ground))
            kind = WorkKind.EMBED if ":" in name else WorkKind.SUMMARIZE
            with stack.app.transaction(stack.tenant_id) as connection:
                owe(connection, stack.tenant_id, [Owed(kind, name, ground.scope)])
            ground.leases = _claim_subject(stack, name)
            return ground

        def check(ground: Ground, ended: Ended) -> None:
            assert ended.first.rows_removed > 0, ended.first
            assert ended.second is None or isinstance(ended.second, FencedError)
            for table in ("scope", "conversation", "turn", "page", "embedding", "posting", "work", "event"):
                found = rows(stack, f"select 1 from memoryos.{table} where scope_id = :scope", scope=ground.scope)
                assert found == [], table

        grounds = Grounds(stack)
        pair = Pair(
            prepare,
            lambda session, ground: erase_user(session.app, ground.tenant_id, ground.user),
            lambda session, ground: stage(_parts(session.app), ground.leases[0]),
            check,
            first_counts=ERASES,
            first_gives_way=True,
            second_counts=LOCKS_AND_ENDS,
        )
        assert run_all_orders(stack, pair) >= 6

    @pytest.mark.parametrize("conversation", ["c1", "other"])
    def test_an_erasure_meets_a_new_turn(self, stack: Stack, conversation: str) -> None:
        """A turn is erased with its user, or refused; none is left, and none comes behind, not even by a new agent."""

        def prepare() -> Ground:
            ground = grounds.owed()
            ground.record(stack.app, "c1/before")
            return ground

        def check(ground: Ground, ended: Ended) -> None:
            assert ended.first.rows_removed > 0, ended.first
            assert isinstance(ended.second, (list, ErasedScopeError))
            assert rows(stack, "select agent_id from memoryos.scope where user_id = :user", user=ground.user) == []
            assert rows(stack, "select 1 from memoryos.turn where speaker = :user", user=ground.user) == []

        grounds = Grounds(stack)
        pair = Pair(
            prepare,
            lambda session, ground: erase_user(session.app, ground.tenant_id, ground.user),
            lambda session, ground: ground.record(session.app, f"{conversation}/new"),
            check,
            first_counts=ERASES,
            first_gives_way=True,
        )
        assert run_all_orders(stack, pair) >= 4

    def test_an_erasure_meets_a_policy_of_the_user(self, stack: Stack) -> None:
        """A policy is erased with its user, or refused: the name comes back in no order."""

        def check(ground: Ground, ended: Ended) -> None:
            assert ended.first.rows_removed > 0, ended.first
            assert isinstance(ended.second, (PolicyRow, ErasedScopeError)), ended.second
            assert rows(stack, "select 1 from memoryos.policy where user_id = :user", user=ground.user) == []

        pair = Pair(
            Grounds(stack).owed,
            lambda session, ground: erase_user(session.app, ground.tenant_id, ground.user),
            lambda session, ground: put_policy(
                session.app, ground.tenant_id, user_id=ground.user, preset="default", policy=Policy()
            ),
            check,
            first_counts=ERASES,
            first_gives_way=True,
        )
        assert run_all_orders(stack, pair) >= 4


class TestLockOrder:
    """Stages that hold several rows take them in one order: no order of their steps is a deadlock."""

    def test_two_batches_that_wake_the_same_memories(self, stack: Stack) -> None:
        """Each indexes a page of either user; both wake both memories."""
        one, other = Grounds(stack), Grounds(stack, numbers=count(1000))

        def prepare() -> tuple[list[Lease], list[Lease]]:
            pages = [[ground.scope, *_summarized_pages(ground, 2)] for ground in (one.owed(), other.owed())]
            batches = zip(*(page[1:] for page in pages), strict=True)
            first, second = ([_claim_subject(stack, f"summary:{page}")[0] for page in batch] for batch in batches)
            return first, second[::-1]

        def check(_: tuple[list[Lease], list[Lease]], ended: Ended) -> None:
            assert (ended.first, ended.second) == (None, None)

        pair = Pair(
            prepare,
            lambda session, batches: embed_together(_parts(session.app), batches[0]),
            lambda session, batches: embed_together(_parts(session.app), batches[1]),
            check,
            first_counts=OWES_AND_ENDS,
            second_counts=OWES_AND_ENDS,
        )
        assert run_all_orders(stack, pair) >= 3

    def test_a_late_summary_meets_the_indexing_of_those_behind(self, stack: Stack) -> None:
        """Summarizing the first page rewrites the chain behind it, while that is being indexed."""

        def prepare() -> Ground:
            grounds.skip_until(_has_ids_against_the_order)
            ground = grounds.owed()
            pages = _summarized_pages(ground, 3)
            kinds = [(WorkKind.SUMMARIZE, str(pages[0])), *((WorkKind.EMBED, f"summary:{page}") for page in pages[1:])]
            with stack.app.transaction(stack.tenant_id) as connection:
                connection.execute(BREAK_CHAIN, {"page_id": pages[0]})
                owe(connection, stack.tenant_id, [Owed(kind, subject, ground.scope) for kind, subject in kinds])
            ground.leases = [_claim_subject(stack, subject)[0] for _, subject in kinds]
            return ground

        def check(_: Ground, ended: Ended) -> None:
            assert (ended.first, ended.second) == (None, None)

        grounds = Grounds(stack)
        pair = Pair(
            prepare,
            lambda session, ground: summarize_page(_parts(session.app), ground.leases[0]),
            lambda session, ground: embed_together(_parts(session.app), ground.leases[:0:-1]),
            check,
            first_counts=statements_with("first_seq for no key update", "update memoryos.work"),
            second_counts=statements_with("for no key update", "update memoryos.work"),
        )
        assert run_all_orders(stack, pair) >= 3

    def test_applying_heat_meets_the_indexing_of_a_page_that_was_read(self, stack: Stack) -> None:
        """One page of a conversation was read, another is cold and archived, the first is being indexed."""

        def prepare() -> Ground:
            ground = grounds.owed()
            read, cold = _summarized_pages(ground, 2)
            with stack.app.transaction(stack.tenant_id) as connection:
                connection.execute(WARM, {"cold": cold, "scope": ground.scope})
                owed = [
                    Owed(WorkKind.HEAT, str(ground.scope), ground.scope),
                    Owed(WorkKind.EMBED, f"turns:{read}", ground.scope),
                ]
                owe(connection, stack.tenant_id, owed)
            record_access(
                stack.app, stack.tenant_id, ground.scope,
                retrieval_id=mint_id(), cause="injected", owners=[("page", read)],
            )  # fmt: skip
            ground.leases = [_claim_subject(stack, each.subject_key)[0] for each in owed]
            return ground

        def check(ground: Ground, ended: Ended) -> None:
            assert (ended.first, ended.second) == (None, None)
            tiers = "select tier from memoryos.page where scope_id = :scope order by first_seq"
            assert rows(stack, tiers, scope=ground.scope) == [("warm",), ("archived",)]

        grounds = Grounds(stack)
        pair = Pair(
            prepare,
            lambda session, ground: apply_heat(_parts(session.app), ground.leases[0]),
            lambda session, ground: embed(_parts(session.app), ground.leases[1]),
            check,
            first_counts=statements_with("order by conversation_id for no key update", "update memoryos.work"),
            second_counts=statements_with("for no key update", "update memoryos.page", "update memoryos.work"),
        )
        assert run_all_orders(stack, pair) >= 3


def _claim_subject(stack: Stack, subject: str) -> list[Lease]:
    with stack.app.transaction(stack.tenant_id) as connection:
        values = {"tenant_id": stack.tenant_id, "subjects": [subject]}
        ids = connection.execute(FIND_WORK, values).scalars().all()
    return stack.ledger.claim(ids, owner="before", lease_seconds=60)


def _parts(database: Database) -> Parts:
    return Parts(database, HashingEmbedder(), HashtagModel(), ONE_EACH)


def _has_ids_against_the_order(scope: UUID) -> bool:
    """Tell whether the id of the third page comes before that of the second."""
    conversation = conversation_id(scope, "c1")
    return str(page_id(conversation, 3)) < str(page_id(conversation, 2))


def _summarized_page(ground: Ground) -> UUID:
    """Make one page with a summary and its vector."""
    (page,) = _summarized_pages(ground, 1)
    embed(_parts(ground.stack.app), _claim_subject(ground.stack, f"summary:{page}")[0])
    return page


def _summarized_pages(ground: Ground, number: int) -> list[UUID]:
    """Make pages of one chain that are summarized and wait to be indexed."""
    stack, parts = ground.stack, _parts(ground.stack.app)
    ground.record(stack.app, *(f"c1/{n}" for n in range(number + 1)), body="#tag said")
    conversation = conversation_id(ground.scope, "c1")
    advance(parts, _claim_subject(stack, str(conversation))[0])
    pages = [page_id(conversation, 1 + n) for n in range(number)]
    for page in pages:
        summarize_page(parts, _claim_subject(stack, str(page))[0])
    with stack.app.transaction(stack.tenant_id) as connection:
        ensure_space(connection, parts.embedder)  # or the first two to embed anything would meet over its name
    return pages
