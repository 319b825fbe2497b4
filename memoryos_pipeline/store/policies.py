"""Policies of tenants and users: which one is in force for a scope, setting a new version, the versions there were.

A version is never changed once it is written, so it can be remembered by its id for as long as the process lives;
which version is in force is read every time. A user's own policy goes before the tenant's, the newest version counts.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.policies_presets import policy_of, settings_of

IN_FORCE = """
    select p.policy_id, p.user_id, p.preset, p.version, p.settings, p.created_at from memoryos.policy p
     where p.tenant_id = :tenant_id and (p.user_id = USER or p.user_id is null)
     order by p.user_id nulls last, p.version desc limit 1
"""
OF_USER = text(IN_FORCE.replace("USER", "cast(:user_id as text)"))
OF_SCOPE = text(
    IN_FORCE.replace(
        "USER", "(select s.user_id from memoryos.scope s where s.tenant_id = :tenant_id and s.scope_id = :scope_id)"
    )
)
BY_ID = text("""
    select policy_id, user_id, preset, version, settings, created_at from memoryos.policy
     where tenant_id = :tenant_id and policy_id = any(cast(:ids as uuid[]))
""")
VERSIONS = text("""
    select policy_id, user_id, preset, version, settings, created_at from memoryos.policy
     where tenant_id = :tenant_id and user_id is not distinct from cast(:user_id as text) order by version
""")
# Two who set a policy at once: the second waits here, and then counts on from the first.
LOCK = text("select pg_advisory_xact_lock(hashtextextended('policy|' || cast(:tenant_id as text), 0))")
INSERT = text("""
    insert into memoryos.policy (tenant_id, policy_id, user_id, preset, version, settings)
    select :tenant_id, :policy_id, cast(:user_id as text), :preset,
           1 + coalesce((select max(version) from memoryos.policy
                          where tenant_id = :tenant_id and user_id is not distinct from cast(:user_id as text)), 0),
           cast(:settings as jsonb)
    returning policy_id, user_id, preset, version, settings, created_at
""")
TELL_SCOPES = text("""
    with told as (
        update memoryos.scope s
           set preset = :preset, preset_version = :version, idle_flush_minutes = :idle_flush_minutes
         where s.tenant_id = :tenant_id
           and (s.user_id = cast(:user_id as text)
                or (cast(:user_id as text) is null
                    and not exists (select from memoryos.policy own
                                     where own.tenant_id = s.tenant_id and own.user_id = s.user_id)))
        returning s.scope_id
    )
    insert into memoryos.event (tenant_id, kind, scope_id, subject_id, amount)
    select :tenant_id, 'policy_changed', scope_id, :policy_id, :version from told order by scope_id
    returning scope_id
""")
KNOWN_POLICIES = 10_000


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One version of a policy: of a user, or of the whole tenant when `user_id` is None."""

    policy_id: UUID
    user_id: str | None
    preset: str
    version: int
    policy: Policy
    created_at: datetime


_known: dict[UUID, PolicyRow] = {}


def find_policy(connection: Connection, tenant_id: UUID, *, user_id: str | None = None) -> PolicyRow | None:
    """Return the policy in force for a user, or for the tenant; None when nobody has set one."""
    row = connection.execute(OF_USER, {"tenant_id": tenant_id, "user_id": user_id}).first()
    return _read(row) if row else None


def find_policy_of_scope(connection: Connection, tenant_id: UUID, scope_id: UUID) -> PolicyRow | None:
    """Return the policy in force for a scope; None when nobody has set one."""
    row = connection.execute(OF_SCOPE, {"tenant_id": tenant_id, "scope_id": scope_id}).first()
    return _read(row) if row else None


def load_policies(connection: Connection, tenant_id: UUID, ids: Iterable[str]) -> dict[str, Policy]:
    """Return these versions by id as text; those seen before cost no statement."""
    wanted = {UUID(each): each for each in ids}
    unknown = [each for each in wanted if each not in _known]
    if unknown:
        for row in connection.execute(BY_ID, {"tenant_id": tenant_id, "ids": unknown}):
            _read(row)
    return {written: _known[each].policy for each, written in wanted.items() if each in _known}


def list_versions(connection: Connection, tenant_id: UUID, *, user_id: str | None = None) -> list[PolicyRow]:
    """Return every version of a user's own policy, or of the tenant's, oldest first."""
    rows = connection.execute(VERSIONS, {"tenant_id": tenant_id, "user_id": user_id})
    return [_read(row) for row in rows]


def set_policy(
    connection: Connection, tenant_id: UUID, *, user_id: str | None, preset: str, policy: Policy
) -> tuple[PolicyRow, list[UUID]]:  # fmt: skip
    """Write a new version and tell the scopes it is in force for; return it and them.

    What was remembered and forgotten under earlier versions stays as it is.
    """
    key = {"tenant_id": tenant_id, "user_id": user_id, "preset": preset}
    connection.execute(LOCK, {"tenant_id": tenant_id})
    values = {**key, "policy_id": mint_id(), "settings": json.dumps(settings_of(policy))}
    row = _read(connection.execute(INSERT, values).one())
    told = {
        **key,
        "policy_id": row.policy_id,
        "version": row.version,
        "idle_flush_minutes": policy.idle_flush_minutes,
    }
    return row, list(connection.execute(TELL_SCOPES, told).scalars())


def _read(row: Row[Any]) -> PolicyRow:
    known = _known.get(row.policy_id)
    if known is None:
        if len(_known) >= KNOWN_POLICIES:
            _known.clear()
        policy = policy_of(row.preset, row.settings)
        known = PolicyRow(row.policy_id, row.user_id, row.preset, row.version, policy, row.created_at)
        _known[row.policy_id] = known
    return known
