"""A budget and a breaker stand before every model call; neither burns an attempt, and neither asks in vain."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from memoryos_pipeline.domain.errors import (
    BudgetSpentError,
    ModelError,
    ProviderClosedError,
    ProviderPausedError,
)
from memoryos_pipeline.domain.provider_limits import AT_ONCE_SECONDS
from memoryos_pipeline.domain.work import ErrorClass, Owed, WorkKind
from memoryos_pipeline.models.anthropic import AnthropicModel
from memoryos_pipeline.models.anthropic_client import AnthropicClient
from memoryos_pipeline.readmodels.system_state import read_system_state
from memoryos_pipeline.store.journal import WorkJournal
from memoryos_pipeline.store.keys import set_budget
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.payments import Payments
from memoryos_pipeline.store.provider_limits import EVERY, list_limits, set_limit
from tests.builders import create_scope
from tests.conftest import Stack
from tests.stub_server.server import StubServer
from tests.unit.models.pages import page

BROKEN = """
    create function memoryos.break_it() returns trigger language plpgsql as $$ begin raise 'broken'; end $$;
    create trigger broken before update on memoryos.provider_state execute function memoryos.break_it()
"""
PROVIDER = "127.0.0.1/stub-model"


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        yield server


def _model(stub: StubServer) -> AnthropicModel:
    client = AnthropicClient(model="stub-model", api_key="k", base_url=stub.url, deadline_seconds=5)
    return AnthropicModel(client)


def _journal(stack: Stack) -> WorkJournal:
    scope = create_scope(stack)
    with stack.app.transaction(stack.tenant_id) as connection:
        owe(connection, stack.tenant_id, [Owed(WorkKind.SUMMARIZE, "page", scope)])
        work_id = connection.execute(text("select work_id from memoryos.work")).scalar_one()
    return WorkJournal(stack.app, stack.ledger.claim([work_id], owner="test", lease_seconds=60)[0])


def _state(stack: Stack) -> dict[str, object]:
    with stack.app.transaction(stack.tenant_id) as connection:
        state = read_system_state(connection, stack.tenant_id)
    return {**state["budget"], "phase": next((each["phase"] for each in state["providers"]), None)}


def _cool(stack: Stack) -> None:
    with stack.app.across_tenants() as connection:
        connection.execute(text("update memoryos.provider_state set retry_at = clock_timestamp()"))


class TestBudget:
    def test_what_a_call_cost_is_settled(self, stack: Stack, stub: StubServer) -> None:
        """At rest nothing is set aside, and what was spent is what the journal says."""
        journal = _journal(stack)
        set_budget(stack.owner, stack.tenant_id, tokens_per_day=100_000)
        _model(stub).summarize(page("I moved to Lisbon"), journal=journal)

        with stack.app.transaction(stack.tenant_id) as connection:
            paid = connection.execute(text("select sum(tokens_in + tokens_out) from memoryos.llm_call")).scalar_one()
        assert _state(stack) == {"tokens_per_day": 100_000, "spent_today": paid, "set_aside": 0, "phase": "closed"}
        assert paid > 0

    def test_an_answer_that_could_not_be_settled_is_not_asked_for_again(self, stack: Stack, stub: StubServer) -> None:
        """The answer is kept before anything else can fail, and what it cost is counted."""
        journal, model = _journal(stack), _model(stub)
        set_budget(stack.owner, stack.tenant_id, tokens_per_day=100_000)
        with stack.owner.across_tenants() as connection:
            connection.execute(text(BROKEN))
        with pytest.raises(DBAPIError):
            model.summarize(page("I moved to Lisbon"), journal=journal)
        with stack.owner.across_tenants() as connection:
            connection.execute(text("drop trigger broken on memoryos.provider_state"))

        model.summarize(page("I moved to Lisbon"), journal=journal)
        assert len(stub.requests) == 1
        assert int(str(_state(stack)["spent_today"])) > 0

    def test_a_spent_budget_asks_nobody(self, stack: Stack, stub: StubServer) -> None:
        """The cap is never passed: what could cost more than is left waits for the next day, without an attempt."""
        set_budget(stack.owner, stack.tenant_id, tokens_per_day=50)
        with pytest.raises(BudgetSpentError) as caught:
            _model(stub).summarize(page("I moved to Lisbon"), journal=_journal(stack))

        assert (caught.value.error_class, stub.calls) == (ErrorClass.DEFERRED, 0)
        assert 0 < (caught.value.retry_after_seconds or 0) <= 86_400

    def test_calls_under_way_count(self, stack: Stack) -> None:
        """Two workers cannot spend the same tokens; what a vanished one has set aside comes back by itself."""
        set_budget(stack.owner, stack.tenant_id, tokens_per_day=100)
        payments = Payments(stack.app, stack.tenant_id)
        with payments.paying(PROVIDER, tokens=60, seconds=60) as payment:
            with pytest.raises(BudgetSpentError), payments.paying(PROVIDER, tokens=60, seconds=60):
                pytest.fail("both were let through")
            with stack.app.transaction(stack.tenant_id) as connection:
                connection.execute(text("update memoryos.reservation set expires_at = '2026-01-01'"))
            with payments.paying(PROVIDER, tokens=60, seconds=60) as other:
                other.tokens = 20
            payment.tokens = 10

        assert (_state(stack)["spent_today"], _state(stack)["set_aside"]) == (30, 0)


class TestLimits:
    @pytest.mark.parametrize("whose", [PROVIDER, EVERY])
    def test_calls_at_once_are_bound(self, stack: Stack, whose: str) -> None:
        """One more waits without being asked; one that ended, however it ended, makes room."""
        set_limit(stack.owner, whose, calls_per_minute=None, calls_per_hour=None, calls_at_once=1)
        payments = Payments(stack.app, stack.tenant_id)
        with (
            payments.paying(PROVIDER, tokens=1, seconds=60),
            pytest.raises(ProviderPausedError) as caught,
            payments.paying(PROVIDER, tokens=1, seconds=60),
        ):
            pytest.fail("both were let through")
        with pytest.raises(ModelError, match="broken"), payments.paying(PROVIDER, tokens=1, seconds=60):
            raise ModelError("broken")
        with payments.paying(PROVIDER, tokens=1, seconds=60):
            pass

        assert (caught.value.error_class, caught.value.retry_after_seconds) == (ErrorClass.DEFERRED, AT_ONCE_SECONDS)

    def test_a_call_whose_process_is_gone_makes_room(self, stack: Stack) -> None:
        """What it holds runs out with the deadline of the call."""
        set_limit(stack.owner, PROVIDER, calls_per_minute=None, calls_per_hour=None, calls_at_once=1)
        payments = Payments(stack.app, stack.tenant_id)
        payments._begin(PROVIDER, 1, 0.0)

        with payments.paying(PROVIDER, tokens=1, seconds=60):
            pass

    @pytest.mark.parametrize(("column", "bound"), [("minute", "calls_per_minute"), ("hour", "calls_per_hour")])
    def test_calls_in_a_time_are_bound(self, stack: Stack, column: str, bound: str) -> None:
        """All tenants and processes count together; when the time is over the next call is let through."""
        set_limit(stack.owner, PROVIDER, **{"calls_per_minute": None, "calls_per_hour": None, "calls_at_once": None,
                                            bound: 2})  # fmt: skip
        payments = Payments(stack.app, stack.tenant_id)
        for _ in range(2):
            with payments.paying(PROVIDER, tokens=1, seconds=60):
                pass
        with pytest.raises(ProviderPausedError, match="2 calls") as caught:
            payments._begin(PROVIDER, 1, 60)
        assert 0 < (caught.value.retry_after_seconds or 0) <= 3600

        with stack.owner.across_tenants() as connection:
            connection.execute(
                text(f"update memoryos.provider_limit set {column}_at = {column}_at - interval '1 hour'")
            )
        with payments.paying(PROVIDER, tokens=1, seconds=60):
            pass

    def test_without_a_limit_nothing_is_counted(self, stack: Stack) -> None:
        """A limit that is taken away binds nobody; another provider's never did."""
        set_limit(stack.owner, "other", calls_per_minute=1, calls_per_hour=None, calls_at_once=None)
        set_limit(stack.owner, PROVIDER, calls_per_minute=1, calls_per_hour=None, calls_at_once=None)
        set_limit(stack.owner, PROVIDER, calls_per_minute=None, calls_per_hour=None, calls_at_once=None)
        for _ in range(3):
            with Payments(stack.app, stack.tenant_id).paying(PROVIDER, tokens=1, seconds=60):
                pass

        with stack.app.across_tenants() as connection:
            assert [(each.provider, each.minute_calls) for each in list_limits(connection)] == [("other", 0)]


class TestBreaker:
    def test_a_broken_provider_is_left_alone_and_tried_again(self, stack: Stack, stub: StubServer) -> None:
        """Twenty failures open it: nobody is asked. Cooled, one call goes through, and its answer closes it."""
        model, journal = _model(stub), _journal(stack)
        stub.mode = "overloaded"
        for _ in range(20):
            with pytest.raises(ModelError):
                model.summarize(page("I moved to Lisbon"), journal=journal)
        with pytest.raises(ProviderPausedError) as caught:
            model.summarize(page("I moved to Lisbon"), journal=journal)
        assert (stub.calls, _state(stack)["phase"], caught.value.error_class) == (20, "open", ErrorClass.DEFERRED)

        stub.mode = "ok"
        _cool(stack)
        model.summarize(page("I moved to Lisbon"), journal=journal)
        assert (stub.calls, _state(stack)["phase"]) == (21, "closed")

    def test_a_refused_key_is_told_once(self, stack: Stack, stub: StubServer) -> None:
        """With a wrong credential one call says so; what follows waits and dies of nothing."""
        model, journal = _model(stub), _journal(stack)
        stub.mode = "unauthorized"
        with pytest.raises(ProviderClosedError):
            model.summarize(page("I moved to Lisbon"), journal=journal)
        with pytest.raises(ProviderPausedError, match="401"):
            model.summarize(page("I moved to Porto"), journal=journal)

        assert stub.calls == 1

    def test_an_answer_in_no_shape_is_no_failure_of_the_provider(self, stack: Stack, stub: StubServer) -> None:
        """What was paid for and cannot be read counts against the budget, not against the breaker."""
        model, journal = _model(stub), _journal(stack)
        stub.mode = "garbage"
        for _ in range(15):
            with pytest.raises(ModelError):
                model.summarize(page("I moved to Lisbon"), journal=journal)

        assert _state(stack)["phase"] == "closed"
        assert int(str(_state(stack)["spent_today"])) > 0
