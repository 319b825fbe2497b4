"""The invariants on a schedule: how many violations of each there are over all tenants, kept as figures."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import DBAPIError

from memoryos_pipeline.readmodels.invariants import find_violations
from memoryos_pipeline.store.database import Database

TIMEOUT = text("select set_config('statement_timeout', '5min', true)")
TENANTS = text("select tenant_id from memoryos.tenant order by tenant_id")
BEGIN = text("insert into memoryos.doctor_run (slot) values (:slot) on conflict do nothing")
END = text("""
    update memoryos.doctor_run
       set finished_at = clock_timestamp(), tenants = :tenants, unchecked = :unchecked, violations = :violations
     where slot = :slot
""").bindparams(bindparam("violations", type_=JSONB))
DROP_OLD = text("delete from memoryos.doctor_run where slot < clock_timestamp() - interval '30 days'")
LAST = text("""
    select slot, started_at, finished_at, tenants, unchecked, violations from memoryos.doctor_run
     where finished_at is not null order by slot desc limit 1
""")


@dataclass(frozen=True, slots=True)
class DoctorRun:
    """A scheduled run that came to its end. `unchecked` tenants could not be read; nothing is said about them."""

    slot: datetime
    started_at: datetime
    finished_at: datetime
    tenants: int
    unchecked: int
    violations: dict[str, int]

    def as_json(self) -> dict[str, Any]:
        """Return the run as JSON values, times as ISO 8601."""
        times = {name: getattr(self, name).isoformat() for name in ("slot", "started_at", "finished_at")}
        return {**times, "tenants": self.tenants, "unchecked": self.unchecked, "violations": self.violations}


def run_doctor(app: Database, ledger: Database, *, slot: datetime) -> Counter[str]:
    """Count the violations of every tenant, a transaction each, and keep the sums under the slot."""
    with ledger.across_tenants() as connection:
        tenants = list(connection.execute(TENANTS).scalars())
        connection.execute(BEGIN, {"slot": slot})
    found: Counter[str] = Counter()
    unchecked = 0
    for tenant_id in tenants:
        try:
            with app.transaction(tenant_id) as connection:
                connection.execute(TIMEOUT)
                found.update(each.invariant for each in find_violations(connection, tenant_id))
        except DBAPIError:
            unchecked += 1
    with ledger.across_tenants() as connection:
        values = {"slot": slot, "tenants": len(tenants), "unchecked": unchecked, "violations": dict(found)}
        connection.execute(END, values)
        connection.execute(DROP_OLD)
    return found


def last_run(connection: Connection) -> DoctorRun | None:
    """Return the last scheduled run that came to its end; None before the first."""
    row = connection.execute(LAST).first()
    return DoctorRun(*row) if row else None
