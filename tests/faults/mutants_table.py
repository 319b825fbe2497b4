"""The safeguards, how each is taken out, and which tests must notice."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

STORE = "memoryos_pipeline.store"
LEDGER_TESTS = "tests/integration/test_ledger.py"
RECORD_TESTS = "tests/integration/test_record_turns.py"
RELAY_TESTS = "tests/integration/test_relay.py"
ENVELOPE_TESTS = "tests/integration/test_envelope.py"
ROW_SECURITY_TESTS = "tests/integration/test_row_level_security.py"
ORDERS = "tests/integration/test_interleavings.py"
SAFEGUARDS = "tests/integration/test_safeguards.py"

Change = Callable[[], None]


@dataclass(frozen=True)
class Mutant:
    """One safeguard: `changes` patch the code of a process, `schema` the database; `killers` are pytest node ids."""

    name: str
    safeguard: str
    killers: tuple[str, ...]
    changes: tuple[Change, ...] = ()
    schema: str = ""


def edit_sql(module: str, name: str, old: str, new: str) -> Change:
    """Replace a piece of a statement, wherever it stands. Raises when it stands nowhere: this table is old then."""

    def change() -> None:
        found = importlib.import_module(module)
        statement = getattr(found, name).text
        if old not in statement:
            message = f"{module}.{name} has no {old!r}"
            raise LookupError(message)
        setattr(found, name, text(statement.replace(old, new)))

    return change


def replace(module: str, path: str, replacement: Any) -> Change:
    """Put something in the place of a function or a value."""

    def change() -> None:
        owner: Any = importlib.import_module(module)
        *parents, name = path.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        if not hasattr(owner, name):
            message = f"{module} has no {path}"
            raise LookupError(message)
        setattr(owner, name, replacement)

    return change


def answer_before_commit() -> None:
    """Answer 202 while the transaction is open, and commit after the answer was sent."""
    from contextlib import ExitStack, contextmanager

    from starlette.background import BackgroundTask

    from memoryos_pipeline.api.json_body import load_json
    from memoryos_pipeline.api.routes import turns
    from memoryos_pipeline.domain.turn_body import parse_turns
    from memoryos_pipeline.stages.record_turns import record_turns

    class Late:
        def __init__(self, database: Any) -> None:
            self._database, self.open = database, ExitStack()

        @contextmanager
        def transaction(self, tenant_id: Any) -> Any:
            yield self.open.enter_context(self._database.transaction(tenant_id))

    def record(parts: Any, tenant_id: Any, body: bytes) -> Any:
        given = parse_turns(load_json(body))
        late: Any = Late(parts.database)
        receipts = record_turns(
            late,
            tenant_id,
            given,
            policy=parts.policy,
            max_attempts=parts.max_attempts,
        )
        response = turns._receipts_response(receipts, status=202)
        response.background = BackgroundTask(late.open.close)
        return response

    turns._record = record


ALL_TENANT_TABLES = """
    do $$ declare name text; begin
        for name in select c.relname from pg_catalog.pg_class c
                      join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
                     where c.relnamespace = 'memoryos'::regnamespace and c.relkind = 'r'
        loop execute format('alter table memoryos.%I ACTION row level security', name); end loop;
    end $$
"""

MUTANTS = (
    Mutant(
        "unique key of turns",
        "a turn's key is unique in its conversation",
        (
            f"{RECORD_TESTS}::TestRepeat::test_a_repeat_gets_the_first_receipt",
            f"{RECORD_TESTS}::TestConcurrency::test_a_hundred_parallel_repeats_make_one_turn",
            f"{ORDERS}::TestIngest::test_a_turn_that_is_sent_twice_at_once_is_one",
            f"{ORDERS}::TestIngest::test_one_key_with_two_bodies_is_one_turn_and_one_conflict",
        ),
        schema="""
            alter table memoryos.turn drop constraint turn_tenant_id_conversation_id_client_turn_id_key;
            alter table memoryos.turn drop constraint turn_tenant_id_turn_id_key;
        """,
    ),
    Mutant(
        "fence in complete",
        "only who holds the lease completes",
        (
            f"{LEDGER_TESTS}::TestComplete::test_a_late_worker_is_fenced",
            f"{ORDERS}::TestCompletion::test_a_late_completion_meets_the_next_owner",
            f"{ORDERS}::TestCompletion::test_a_late_completion_meets_the_reaper",
        ),
        (edit_sql(f"{STORE}.ledger", "COMPLETE", "w.fence = given.fence and w.state = 'leased'", "given.fence > 0"),),
    ),
    Mutant(
        "fence in hold",
        "only who holds the lease makes progress",
        (f"{SAFEGUARDS}::TestFence::test_progress_of_a_late_worker_is_refused",),
        (edit_sql(f"{STORE}.ledger", "HOLD", "fence = :fence", "cast(:fence as bigint) > 0"),),
    ),
    Mutant(
        "fence in fail",
        "only who holds the lease gives work up",
        (f"{SAFEGUARDS}::TestFence::test_a_failure_of_a_late_worker_changes_nothing",),
        (edit_sql(f"{STORE}.ledger", "FAIL", "fence = :fence", "cast(:fence as bigint) > 0"),),
    ),
    Mutant(
        "fence in release",
        "only who holds the lease hands work back",
        (f"{SAFEGUARDS}::TestFence::test_a_late_worker_hands_nothing_back",),
        (edit_sql(f"{STORE}.ledger", "RELEASE", "w.fence = held.fence", "held.fence > 0"),),
    ),
    Mutant(
        "attempt before run",
        "an attempt counts before it runs",
        (
            f"{LEDGER_TESTS}::TestClaim::test_a_row_is_claimed_once",
            f"{ENVELOPE_TESTS}::TestDeliver::test_what_kills_a_process_is_given_up_alone",
            f"{RELAY_TESTS}::TestTick::test_work_that_always_kills_its_worker_is_buried",
        ),
        tuple(
            edit_sql(f"{STORE}.ledger", name, "attempts = w.attempts + 1", "attempts = w.attempts")
            for name in ("CLAIM", "CLAIM_WAITING")
        ),
    ),
    Mutant(
        "begin",
        "what was claimed ahead counts once its stage begins",
        (f"{ENVELOPE_TESTS}::TestDeliver::test_what_kills_a_process_is_given_up_alone",),
        (replace(f"{STORE}.ledger", "Ledger.begin", lambda *_: None),),
    ),
    Mutant(
        "claimed ahead",
        "what was only claimed goes down with nobody",
        (f"{ENVELOPE_TESTS}::TestDeliver::test_what_was_only_claimed_goes_down_with_nobody",),
        (edit_sql(f"{STORE}.publishing", "REAP", "begun as counts", "true as counts"),),
    ),
    Mutant(
        "share of suspects",
        "what went down with its worker is tried again few at a time",
        (f"{RELAY_TESTS}::TestTick::test_what_went_down_with_its_worker_is_tried_alone_and_few_at_a_time",),
        (edit_sql(f"{STORE}.publishing", "PICK_SUSPECTS", "greatest(:share - rows, 0)", "1000 + 0 * :share"),),
    ),
    Mutant(
        "generation",
        "a wake-up during work makes it run again",
        (
            f"{LEDGER_TESTS}::TestComplete::test_a_wake_up_during_work_is_not_lost",
            f"{ORDERS}::TestCompletion::test_a_wake_up_meets_the_completion",
        ),
        (edit_sql(f"{STORE}.ledger", "COMPLETE", "when w.generation = held.generation", "when held.generation > 0"),),
    ),
    Mutant(
        "set local",
        "the tenant of a transaction ends with it",
        (
            f"{SAFEGUARDS}::TestTenantSetting::test_ends_with_its_transaction",
            f"{LEDGER_TESTS}::TestTenants::test_the_app_role_sees_nothing_without_a_tenant",
        ),
        (edit_sql(f"{STORE}.database", "SET_TENANT", ":tenant_id, true", ":tenant_id, false"),),
    ),
    Mutant(
        "forced row security",
        "row security binds the owner of the tables too",
        (
            f"{SAFEGUARDS}::TestForcedRowSecurity::test_the_owner_sees_one_tenant_at_a_time",
            f"{ROW_SECURITY_TESTS}::TestEveryTable::test_has_row_level_security_enabled_and_forced",
        ),
        schema=ALL_TENANT_TABLES.replace("ACTION", "no force"),
    ),
    Mutant(
        "row security",
        "row security hides other tenants from the application",
        (
            f"{LEDGER_TESTS}::TestTenants::test_the_app_role_sees_nothing_without_a_tenant",
            f"{ROW_SECURITY_TESTS}::TestEveryTable::test_shows_the_app_nothing_of_another_tenant[turn]",
            f"{ROW_SECURITY_TESTS}::TestEveryTable::test_takes_nothing_from_the_app_for_another_tenant[knowledge]",
        ),
        schema=ALL_TENANT_TABLES.replace("ACTION", "disable"),
    ),
    Mutant(
        "broker epoch",
        "an emptied broker is noticed",
        (
            f"{RELAY_TESTS}::TestTick::test_an_emptied_broker_is_noticed",
            f"{RELAY_TESTS}::TestTick::test_an_emptied_broker_is_noticed_while_the_database_is_away",
        ),
        (replace("workers.relay", "Relay._check_epoch", lambda _: None),),
    ),
    Mutant(
        "journal",
        "a paid answer is used again after a crash",
        (f"{SAFEGUARDS}::TestJournal::test_a_crash_after_the_answer_pays_once",),
        (replace(f"{STORE}.journal", "WorkJournal.find", lambda *_: None),),
    ),
    Mutant(
        "skip locked in claim",
        "a claim passes over what others hold",
        (f"{LEDGER_TESTS}::TestClaim::test_a_row_that_stays_locked_holds_up_nobody",),
        (edit_sql(f"{STORE}.ledger", "CLAIM", "for update skip locked", "for update"),),
    ),
    Mutant(
        "skip locked in the relay",
        "two relays never wait for one another",
        (f"{ORDERS}::TestClaims::test_two_relays_ring_once_and_never_wait",),
        (edit_sql(f"{STORE}.publishing", "PICK", "for update skip locked", "for update"),),
    ),
    Mutant(
        "skip locked in the reaper",
        "the reaper waits for no worker",
        (f"{ORDERS}::TestCompletion::test_a_late_completion_meets_the_reaper",),
        (edit_sql(f"{STORE}.publishing", "REAP", "for update skip locked", "for update"),),
    ),
    Mutant(
        "skip locked in beat",
        "a beat waits for no stage",
        (
            f"{LEDGER_TESTS}::TestBeat::test_a_row_that_is_locked_does_not_stop_the_others",
            f"{LEDGER_TESTS}::TestBeat::test_a_stage_that_owes_a_row_of_its_own_process_goes_on",
        ),
        (edit_sql(f"{STORE}.ledger", "BEAT", "for update of at skip locked", "for update of at"),),
    ),
    Mutant(
        "202 after commit",
        "202 is said after the commit",
        (
            f"{SAFEGUARDS}::TestAnswer::test_a_202_leaves_after_the_commit",
            f"{SAFEGUARDS}::TestAnswer::test_a_commit_that_fails_is_not_a_202",
        ),
        (answer_before_commit,),
    ),
    Mutant(
        "lease",
        "work that is leased is not claimed again before the lease runs out",
        (
            f"{LEDGER_TESTS}::TestClaim::test_a_row_is_claimed_once",
            f"{ORDERS}::TestClaims::test_two_workers_share_rows_without_a_rest",
        ),
        tuple(
            edit_sql(f"{STORE}.ledger", name, "lease_until < clock_timestamp()", "lease_until is not null")
            for name in ("CLAIM", "CLAIM_WAITING")
        ),
    ),
    Mutant(
        "waiting for a locked row",
        "a claim waits for a row that is being owed again",
        (f"{LEDGER_TESTS}::TestClaim::test_a_row_that_is_being_owed_again_is_waited_for",),
        (edit_sql(f"{STORE}.ledger", "STILL_DUE", "state = 'ready'", "state = 'done'"),),
    ),
    Mutant(
        "lock of erasing and recording",
        "recording waits for an erasure of its user",
        (f"{ORDERS}::TestErasure::test_an_erasure_meets_a_new_turn",),
        (edit_sql(f"{STORE}.turns", "OPEN_CONVERSATIONS", ", pg_advisory_xact_lock_shared(a.lock_key)", ""),),
    ),
    Mutant(
        "deletion ledger",
        "an erased user is refused",
        (f"{RECORD_TESTS}::TestErasure::test_an_erased_user_is_refused",),
        (
            edit_sql(f"{STORE}.turns", "OPEN_CONVERSATIONS", "d.subject_hash = a.subject", "false"),
            edit_sql(
                f"{STORE}.turns",
                "INSERT_TURNS",
                "d.tenant_id = :tenant_id and",
                "false and d.tenant_id = :tenant_id and",
            ),
        ),
    ),
    Mutant(
        "version of a memory",
        "a merge that read what has changed since is done again",
        (
            "tests/integration/stages/test_merge_knowledge.py::TestRepeat::test_knowledge_that_changed_meanwhile_is_read_again",
        ),
        (
            edit_sql(
                f"{STORE}.knowledge", "MOVE_SCOPE", "lock_version = lock_version + 1", "lock_version = lock_version"
            ),
        ),
    ),
    Mutant(
        "wake after giving up",
        "whoever waits for work that was given up learns it",
        ("tests/integration/stages/test_assign_segments.py::TestOrder::test_giving_up_wakes_whoever_waited",),
        schema="drop trigger wake_who_waits on memoryos.dead_letter",
    ),
    Mutant(
        "deferral",
        "a deferral gives the attempt back",
        (
            f"{LEDGER_TESTS}::TestFail::test_a_deferral_burns_no_attempt",
            f"{ENVELOPE_TESTS}::TestDeliver::test_a_deadlock_burns_no_attempt",
        ),
        (
            edit_sql(
                f"{STORE}.ledger",
                "FAIL",
                "attempts = attempts - case when :burns_attempt then 0 else 1 end",
                "attempts = attempts",
            ),
        ),
    ),
    Mutant(
        "order of pages",
        "whoever indexes several pages locks them in one order",
        (f"{ORDERS}::TestLockOrder::test_a_late_summary_meets_the_indexing_of_those_behind",),
        (replace("memoryos_pipeline.stages.embed", "lock_pages", lambda *_: None),),
    ),
    Mutant(
        "conversations before pages",
        "heat locks the conversations of pages before the pages",
        (f"{ORDERS}::TestLockOrder::test_applying_heat_meets_the_indexing_of_a_page_that_was_read",),
        (replace("memoryos_pipeline.stages.apply_heat", "lock_touched_pages", lambda *_, **__: None),),
    ),
    Mutant(
        "burials give way",
        "the reaper gives way to a stage",
        (f"{SAFEGUARDS}::TestGivingWay::test_a_burial_holds_up_no_stage",),
        (replace(f"{STORE}.publishing", "LOST_TO_OTHERS", frozenset()),),
    ),
    Mutant(
        "unstamp",
        "what the broker refused is due again",
        (f"{RELAY_TESTS}::TestTick::test_what_the_broker_refused_is_due_again",),
        (edit_sql(f"{STORE}.publishing", "UNSTAMP", "enqueued_at = null", "enqueued_at = enqueued_at"),),
    ),
)
"""Each is taken out by itself; the tests of `killers` are green with all in place."""
