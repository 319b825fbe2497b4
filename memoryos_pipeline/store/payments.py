"""What stands between a tenant and a provider: budget, limits and breaker. Shared by all processes."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from memoryos_pipeline.domain.breaker import Breaker, Outcome, admit, note_outcome
from memoryos_pipeline.domain.budget import Payment, fits, seconds_until_next_day
from memoryos_pipeline.domain.errors import (
    BudgetSpentError,
    InvalidOutputError,
    ModelError,
    ModelRefusedError,
    ProviderClosedError,
    ProviderPausedError,
)
from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.provider_limits import begin_call, end_call

STATE = """
    select window_at, phase, calls, failures, trips, retry_at, reason, clock_timestamp() as now
      from memoryos.provider_state where provider = :provider
"""
FIND_STATE = text(STATE)
LOCK_STATE = text(STATE + " for update")
FIRST_STATE = text("insert into memoryos.provider_state (provider) values (:provider) on conflict do nothing")
SAVE_STATE = text("""
    update memoryos.provider_state
       set changed_at = case when phase = :phase then changed_at else clock_timestamp() end, window_at = :window_at,
           phase = :phase, calls = :calls, failures = :failures, trips = :trips, retry_at = :retry_at, reason = :reason
     where provider = :provider
""")

CAP = text("select tokens_per_day from memoryos.tenant where tenant_id = :tenant_id")
# A day is one of UTC.
OPEN_DAY = text("""
    insert into memoryos.budget (tenant_id, day)
    values (:tenant_id, cast(clock_timestamp() at time zone 'utc' as date)) on conflict do nothing
""")
LOCK_DAY = text("""
    select day, spent, clock_timestamp() as now from memoryos.budget
     where tenant_id = :tenant_id and day = cast(clock_timestamp() at time zone 'utc' as date) for update
""")
DROP_EXPIRED = text("""
    delete from memoryos.reservation where tenant_id = :tenant_id and expires_at < clock_timestamp()
""")
RESERVED = text("""
    select coalesce(sum(tokens), 0) from memoryos.reservation where tenant_id = :tenant_id and day = :day
""")
RESERVE = text("""
    insert into memoryos.reservation (tenant_id, reservation_id, day, tokens, expires_at)
    values (:tenant_id, :reservation_id, :day, :tokens, clock_timestamp() + :seconds * interval '1 second')
""")
RELEASE = text("""
    delete from memoryos.reservation where tenant_id = :tenant_id and reservation_id = :reservation_id
""")
SPEND = text("""
    insert into memoryos.budget (tenant_id, day, spent)
    values (:tenant_id, cast(clock_timestamp() at time zone 'utc' as date), :tokens)
    on conflict (tenant_id, day) do update set spent = budget.spent + excluded.spent
""")


@dataclass(frozen=True, slots=True)
class Begun:
    """A call that was let through, and what is held for it."""

    provider: str
    call_id: UUID | None
    reservation_id: UUID | None


class Payments:
    """Lets calls of one tenant through, and keeps what they cost."""

    def __init__(self, database: Database, tenant_id: UUID) -> None:
        self._database = database
        self._tenant_id = tenant_id

    @contextmanager
    def paying(self, provider: str, *, tokens: int, seconds: float) -> Iterator[Payment]:
        """Set `tokens` aside for one call of at most `seconds`, and settle with what it cost when it has ended.

        Raises ProviderPausedError and BudgetSpentError, both deferrals, before anything is asked.
        """
        begun = self._begin(provider, tokens, seconds)
        payment = Payment()
        try:
            yield payment
        except (InvalidOutputError, ModelRefusedError):
            self._end(begun, payment.tokens or tokens)
            raise
        except ModelError as error:
            outcome: Outcome = "refused" if isinstance(error, ProviderClosedError) else "failed"
            self._end(begun, 0, outcome=outcome, error=error)
            raise
        except DBAPIError:  # of whoever kept the answer, perhaps after its commit: it was paid for all the same
            with suppress(DBAPIError):
                self._end(begun, payment.tokens or 0)
            raise
        self._end(begun, payment.tokens or 0)

    def _begin(self, provider: str, tokens: int, seconds: float) -> Begun:
        with self._database.transaction(self._tenant_id) as connection:
            _pass_breaker(connection, provider, seconds)
            call_id = begin_call(connection, provider, seconds=seconds)
            return Begun(provider, call_id, self._reserve(connection, tokens, seconds))

    def _reserve(self, connection: Connection, tokens: int, seconds: float) -> UUID | None:
        """Reserve within the cap; a tenant without one reserves nothing."""
        key = {"tenant_id": self._tenant_id}
        cap: int | None = connection.execute(CAP, key).scalar()
        if cap is None:
            return None
        connection.execute(OPEN_DAY, key)
        day = connection.execute(LOCK_DAY, key).one()
        connection.execute(DROP_EXPIRED, key)
        reserved = int(connection.execute(RESERVED, {**key, "day": day.day}).scalar_one())
        if not fits(tokens, spent=day.spent, reserved=reserved, cap=cap):
            raise BudgetSpentError(cap, retry_after_seconds=seconds_until_next_day(day.now))
        reservation = mint_id()
        values = {**key, "reservation_id": reservation, "day": day.day, "tokens": tokens, "seconds": seconds}
        connection.execute(RESERVE, values)
        return reservation

    def _end(
        self, begun: Begun, tokens: int, *, outcome: Outcome = "answered", error: ModelError | None = None
    ) -> None:
        with self._database.transaction(self._tenant_id) as connection:
            key = {"tenant_id": self._tenant_id}
            if begun.call_id is not None:
                end_call(connection, begun.provider, begun.call_id)
            if begun.reservation_id is not None:
                connection.execute(RELEASE, {**key, "reservation_id": begun.reservation_id})
            if tokens:
                connection.execute(SPEND, {**key, "tokens": tokens})
        wait = (error.retry_after_seconds if error else None) or 0.0
        with self._database.across_tenants() as connection:
            breaker, now = _lock_state(connection, begun.provider)
            after = note_outcome(breaker, outcome, now, reason=str(error or ""), wait_seconds=wait)
            _save_state(connection, begun.provider, after)


def _pass_breaker(connection: Connection, provider: str, seconds: float) -> None:
    """Raise ProviderPausedError unless the breaker lets a call through; a closed one is only looked at."""
    row = connection.execute(FIND_STATE, {"provider": provider}).first()
    if row is None or row.phase == "closed":
        return
    breaker, now = _lock_state(connection, provider)
    admission = admit(breaker, now, probe_seconds=seconds)
    if not admission.is_admitted:
        raise ProviderPausedError(provider, breaker.reason or "", retry_after_seconds=admission.wait_seconds)
    _save_state(connection, provider, admission.breaker)


def _lock_state(connection: Connection, provider: str) -> tuple[Breaker, datetime]:
    connection.execute(FIRST_STATE, {"provider": provider})
    row = connection.execute(LOCK_STATE, {"provider": provider}).one()
    return Breaker(row.window_at, row.phase, row.calls, row.failures, row.trips, row.retry_at, row.reason), row.now


def _save_state(connection: Connection, provider: str, breaker: Breaker) -> None:
    connection.execute(SAVE_STATE, {"provider": provider, **asdict(breaker)})
