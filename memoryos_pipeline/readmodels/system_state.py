"""What holds the pipeline up beside its work: pauses, alarms, the day's budget, breakers before providers."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.store.vigilance import list_alarms, list_paused

BUDGET = text("""
    select t.tokens_per_day, coalesce(b.spent, 0) as spent,
           coalesce((select sum(r.tokens) from memoryos.reservation r
                      where r.tenant_id = t.tenant_id and r.day = b.day
                        and r.expires_at >= clock_timestamp()), 0) as reserved
      from memoryos.tenant t
      left join memoryos.budget b on b.tenant_id = t.tenant_id
                                 and b.day = cast(clock_timestamp() at time zone 'utc' as date)
     where t.tenant_id = :tenant_id
""")
PROVIDERS = text("""
    select provider, phase, retry_at, reason, changed_at from memoryos.provider_state order by provider
""")


def read_system_state(connection: Connection, tenant_id: UUID) -> dict[str, Any]:
    """Return `paused`, `alarms`, `providers` of the whole system and `budget` of the tenant, as JSON values."""
    return {
        "paused": [
            {"kind": each.kind, "since": _iso(each.paused_at), "by": each.paused_by, "reason": each.reason}
            for each in list_paused(connection)
        ],
        "alarms": [
            {"name": each.name, "subject": each.subject, "since": _iso(each.since), "sentence": each.sentence}
            for each in list_alarms(connection)
        ],
        "budget": _budget(connection, tenant_id),
        "providers": [
            {"provider": row.provider, "phase": row.phase, "retry_at": _iso(row.retry_at), "reason": row.reason}
            for row in connection.execute(PROVIDERS)
        ],
    }


def _budget(connection: Connection, tenant_id: UUID) -> dict[str, int | None]:
    row = connection.execute(BUDGET, {"tenant_id": tenant_id}).first()
    if row is None:
        return {"tokens_per_day": None, "spent_today": 0, "set_aside": 0}
    return {"tokens_per_day": row.tokens_per_day, "spent_today": int(row.spent), "set_aside": int(row.reserved)}


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
