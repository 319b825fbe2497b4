"""Walls between tenants, in every table and for every role."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import errors, sql
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.store.tables import METADATA
from memoryos_pipeline.store.tenants import create_tenant, mint_key
from tests.conftest import Stack
from tests.integration.readmodels.past import Past, live_a_past

TENANT_TABLES = sorted(table.name for table in METADATA.tables.values() if "tenant_id" in table.columns)
OWNERS_TABLES = {"tenant", "api_key", "reader_grant"}
TEXT_OF_PEOPLE = {
    "turn": "content",
    "page": "summary",
    "knowledge": "content",
    "segment": "summary",
    "candidate": "payload",
    "knowledge_note": "context",
    "llm_call": "response",
    "posting": "term",
    "scope": "user_id",
    "verdict": "new_content",
    "entity": "name",
    "embedding": "vec",
}


@pytest.fixture
def other(stack: Stack) -> Past:
    """Another tenant with a past, a key, an erasure and a login of its own."""
    tenant_id = mint_id()
    create_tenant(stack.owner, tenant_id, "other")
    mint_key(stack.owner, tenant_id)
    with stack.owner.transaction(tenant_id) as connection:
        connection.execute(
            text("insert into memoryos.reader_grant (tenant_id, login_role) values (:tenant, 'somebody_else')"),
            {"tenant": tenant_id},
        )
        connection.execute(
            text("insert into memoryos.deletion_ledger (tenant_id, subject_hash) values (:tenant, 'h')"),
            {"tenant": tenant_id},
        )
        connection.execute(
            text("insert into memoryos.erasure_receipt values (:tenant, :tenant, 'h')"), {"tenant": tenant_id}
        )
        connection.execute(text("insert into memoryos.budget values (:tenant, '2026-01-01', 9)"), {"tenant": tenant_id})
        connection.execute(
            text("insert into memoryos.reservation values (:tenant, :tenant, '2026-01-01', 9, now())"),
            {"tenant": tenant_id},
        )
        connection.execute(
            text("insert into memoryos.tally values (:tenant, 'embed', now(), 'done', 9)"), {"tenant": tenant_id}
        )
    return live_a_past(stack.app, tenant_id, canary="theirs")


class TestEveryTable:
    def test_has_row_level_security_enabled_and_forced(self, stack: Stack) -> None:
        """Not even the owner reads across tenants by accident."""
        with stack.owner.across_tenants() as connection:
            rows = connection.execute(
                text("""
                    select c.relname from pg_class c
                      join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
                     where c.relnamespace = cast('memoryos' as regnamespace) and c.relkind = 'r'
                       and c.relrowsecurity and c.relforcerowsecurity
                """)
            ).scalars()
            assert sorted(rows) == TENANT_TABLES

    @pytest.mark.parametrize("name", TENANT_TABLES)
    def test_shows_the_app_nothing_of_another_tenant(self, stack: Stack, other: Past, name: str) -> None:
        """A row that is there for its own tenant is not there for another, nor for nobody."""
        count = text(f"select count(*) from memoryos.{name} where tenant_id = :tenant")
        with stack.app.transaction(other.tenant_id) as connection:
            assert connection.execute(count, {"tenant": other.tenant_id}).scalar_one() > 0
        with stack.app.transaction(stack.tenant_id) as connection:
            assert connection.execute(count, {"tenant": other.tenant_id}).scalar_one() == 0
        with stack.app.across_tenants() as connection:
            assert connection.execute(count, {"tenant": other.tenant_id}).scalar_one() == 0

    @pytest.mark.parametrize("name", TENANT_TABLES)
    def test_takes_nothing_from_the_app_for_another_tenant(self, stack: Stack, other: Past, name: str) -> None:
        """A copied row with a foreign tenant_id is refused, and foreign rows cannot be deleted."""
        with stack.app.transaction(other.tenant_id) as connection:
            row = connection.exec_driver_sql(f"select to_jsonb(r) from memoryos.{name} r limit 1").scalar_one()
        copy = text(f"""
            insert into memoryos.{name} overriding system value
            select * from jsonb_populate_record(cast(null as memoryos.{name}), cast(:row as jsonb))
        """)
        with pytest.raises(ProgrammingError) as refused, stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(copy, {"row": psycopg.types.json.Jsonb(row)})
        assert isinstance(refused.value.orig, errors.InsufficientPrivilege)
        if name not in OWNERS_TABLES:
            assert "row-level security" in str(refused.value.orig)
            with stack.app.transaction(stack.tenant_id) as connection:
                assert connection.exec_driver_sql(f"delete from memoryos.{name}").rowcount == 0


class TestLedgerRole:
    @pytest.mark.parametrize("name", TEXT_OF_PEOPLE)
    def test_cannot_read_text(self, stack: Stack, name: str) -> None:
        """It moves work across tenants and never sees what anybody said."""
        with pytest.raises(ProgrammingError) as refused, stack.ledger_database.across_tenants() as connection:
            connection.exec_driver_sql(f"select {TEXT_OF_PEOPLE[name]} from memoryos.{name}")
        assert isinstance(refused.value.orig, errors.InsufficientPrivilege)

    def test_sees_that_something_is_due(self, stack: Stack, other: Past) -> None:
        """Ids and dates are enough to sweep."""
        with stack.ledger_database.across_tenants() as connection:
            rows = connection.exec_driver_sql("select tenant_id, scope_id, cools_at from memoryos.page").all()
            assert [row.tenant_id for row in rows] == [other.tenant_id]


@contextmanager
def _reader(stack: Stack, *, granted: bool = True) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Log in as a person who reads the stack's tenant by SQL."""
    name = f"reader_{stack.name}"
    with psycopg.connect(stack.url("superuser"), autocommit=True) as superuser:
        login = sql.SQL("create role {} login password 'readers' in role memoryos_reader").format(sql.Identifier(name))
        superuser.execute(login)
    if granted:
        with stack.owner.transaction(stack.tenant_id) as connection:
            connection.execute(
                text("insert into memoryos.reader_grant (tenant_id, login_role) values (:tenant, :name)"),
                {"tenant": stack.tenant_id, "name": name},
            )
    parts = urlsplit(stack.url("app"))
    url = urlunsplit(parts._replace(netloc=f"{name}:readers@{parts.hostname}:{parts.port}"))
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            yield connection
    finally:
        with psycopg.connect(stack.url("superuser"), autocommit=True) as superuser:
            superuser.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


VIEWS = (
    "turns", "hot_turns", "pages", "segments", "knowledge", "knowledge_history", "links", "profile", "conversations",
    "work", "pipeline_lag", "events", "rollups", "verdicts", "relations", "entities", "turns_as_of(now())",
    "pages_as_of(now())", "knowledge_as_of(now())",
)  # fmt: skip


class TestReaderLogin:
    def test_reads_its_own_tenant_and_no_other(self, stack: Stack, other: Past) -> None:
        """Every view and look into the past shows the tenant the login was granted; naming another changes nothing."""
        live_a_past(stack.app, stack.tenant_id, canary="mine")
        with _reader(stack) as connection:
            for forged in ("", f"set app.tenant = '{other.tenant_id}'", "set role memoryos_reader"):
                if forged:
                    connection.execute(forged)  # type: ignore[call-overload]
                for view in VIEWS:
                    rows = connection.execute(f"select distinct tenant_id from memory_v1.{view}").fetchall()  # type: ignore[call-overload]
                    assert rows == [(stack.tenant_id,)], (view, forged)

    def test_sees_nothing_without_a_grant(self, stack: Stack, other: Past) -> None:
        """A member of the group who was given no tenant sees no tenant, whatever it sets."""
        with _reader(stack, granted=False) as connection:
            connection.execute(f"set app.tenant = '{other.tenant_id}'")  # type: ignore[call-overload]
            for view in VIEWS:
                assert connection.execute(f"select count(*) from memory_v1.{view}").fetchone() == (0,)  # type: ignore[call-overload]

    @pytest.mark.parametrize(
        "statement",
        [
            "select key_sha256 from memoryos.api_key",
            "select prefix from memoryos.api_key",
            "select name from memoryos.tenant",
            "select created_at from memoryos.reader_grant",
            "select body_sha256 from memoryos.turn",
            "select vec from memoryos.embedding",
            "select term from memoryos.posting",
            "select response from memoryos.llm_call",
            "select error from memoryos.dead_letter",
            "select payload from memoryos.candidate",
            "select subject_hash from memoryos.deletion_ledger",
            "select * from memoryos.violations",
            "insert into memoryos.scope (tenant_id, scope_id, user_id, agent_id) values (gen_random_uuid(),"
            " gen_random_uuid(), 'x', 'x')",
            "update memoryos.turn set content = 'x'",
            "delete from memoryos.knowledge",
            "update memoryos.clock set frozen_at = now()",
            "insert into memoryos.reader_grant (tenant_id, login_role) values (gen_random_uuid(), session_user)",
            "create table memory_v1.mine (x integer)",
        ],
    )
    def test_may_do_nothing_else(self, stack: Stack, statement: str) -> None:
        """No key, no vector, no journal, no write."""
        with _reader(stack) as connection, pytest.raises(errors.InsufficientPrivilege):
            connection.execute(statement)  # type: ignore[call-overload]

    def test_sees_only_its_own_grant(self, stack: Stack, other: Past) -> None:
        """Which logins other tenants have is theirs to know."""
        with _reader(stack) as connection:
            connection.execute(f"set app.tenant = '{other.tenant_id}'")  # type: ignore[call-overload]
            rows = connection.execute("select login_role from memoryos.reader_grant").fetchall()
            assert rows == [(f"reader_{stack.name}",)]
