"""Whether a database keeps what it promised to keep: its settings, its roles, its schema."""

from dataclasses import dataclass

from sqlalchemy import Connection, text

SETTINGS = text("""
    select name, setting from pg_catalog.pg_settings where name = any(cast(:names as text[])) order by name
""")
LOOSE_ROLES = text("""
    select rolname from pg_catalog.pg_roles
     where rolname in ('memoryos_owner', 'memoryos_app', 'memoryos_ledger', 'memoryos_reader')
       and (rolsuper or rolbypassrls)
     order by rolname
""")
UNWALLED = text("""
    select c.relname from pg_catalog.pg_class c
      join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
     where c.relnamespace = cast('memoryos' as regnamespace) and c.relkind = 'r'
       and not (c.relrowsecurity and c.relforcerowsecurity)
     order by c.relname
""")

# What kind of backend it is, others may not see; clients have a user and a database.
CONNECTIONS = text("""
    select (select count(*) from pg_catalog.pg_stat_activity where usesysid is not null and datid is not null),
           (select sum(cast(setting as integer) * case name when 'max_connections' then 1 else -1 end)
              from pg_catalog.pg_settings
             where name in ('max_connections', 'superuser_reserved_connections', 'reserved_connections'))
""")
UNBOUNDED_ROLES = text("""
    select rolname from pg_catalog.pg_roles r
     where rolname in ('memoryos_app', 'memoryos_ledger')
       and not exists (select from unnest(r.rolconfig) as given
                        where given ~ '^idle_in_transaction_session_timeout=[1-9]')
     order by rolname
""")
ADVICE = "raise max_connections, lower MEMORYOS_DATABASE_POOL_SIZE or run fewer processes"
FULL_SHARE = 0.8
"""From this share of the server's connections on there is no room for one more worker."""

NEEDED = {
    "fsync": "a power failure can take acknowledged turns along",
    "full_page_writes": "a torn page can take a table along",
    "synchronous_commit": "the last acknowledged turns can be lost in a crash",
}
"""Settings that must not be off, and what is lost otherwise."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, whether it is as it should be, and a sentence."""

    name: str
    is_good: bool
    sentence: str


def check_durability(connection: Connection) -> list[Check]:
    """Look at settings, roles and walls of the database this connection belongs to."""
    settings = {row.name: row.setting for row in connection.execute(SETTINGS, {"names": list(NEEDED)})}
    checks = [_setting(name, settings[name]) for name in NEEDED]
    loose = list(connection.execute(LOOSE_ROLES).scalars())
    unwalled = list(connection.execute(UNWALLED).scalars())
    checks.append(Check("roles", not loose, _sentence(loose, "may bypass row level security", "No role of ours")))
    checks.append(Check("walls", not unwalled, _sentence(unwalled, "is without forced row level security", "No table")))
    unbounded = list(connection.execute(UNBOUNDED_ROLES).scalars())
    idle = "may sit idle in a transaction for ever; run ops/postgres/roles.sql"
    checks.append(Check("idle transactions", not unbounded, _sentence(unbounded, idle, "No role of ours")))
    checks.append(_connections(read_room(connection)))
    return checks


@dataclass(frozen=True, slots=True)
class Room:
    """Connections of a server: those in use, and how many it grants to roles like ours at most."""

    used: int
    most: int

    def trouble(self, wanted: int) -> str | None:
        """Return in a sentence why so many more do not fit now; None when they do."""
        if self.used + wanted <= self.most:
            return None
        return (
            f"it may open {wanted} connections, and of the {self.most} of the server {self.used} are in use: {ADVICE}"
        )


def read_room(connection: Connection) -> Room:
    """Return how many connections the server has, of every database and role."""
    return Room(*connection.execute(CONNECTIONS).one())


def _connections(room: Room) -> Check:
    told = f"{room.used} of {room.most} are in use"
    is_good = room.used < FULL_SHARE * room.most
    return Check("connections", is_good, f"{told}." if is_good else f"{told}: {ADVICE}.")


def _setting(name: str, value: str) -> Check:
    is_good = value != "off"
    return Check(name, is_good, f"It is {value}." if is_good else f"It is off: {NEEDED[name]}; switch it on.")


def _sentence(found: list[str], problem: str, nobody: str) -> str:
    return f"{', '.join(found) or nobody} {problem}."
