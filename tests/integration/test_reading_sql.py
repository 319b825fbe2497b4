"""`memoryos sql`: one tenant's read models, and nothing is written."""

import json
from uuid import UUID

import psycopg
import pytest

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.store.reading_sql import read_rows, reading_url
from memoryos_pipeline.store.tenants import create_tenant
from tests.conftest import Stack
from tests.integration.readmodels.past import live_a_past


def _url(stack: Stack, tenant_id: UUID) -> str:
    return reading_url(stack.url("app"), tenant_id)


class TestRead:
    def test_every_statement_gives_its_rows_of_one_tenant(self, stack: Stack) -> None:
        """Names resolve in memory_v1, `%` means itself, and another tenant sees nothing of it."""
        live_a_past(stack.app, stack.tenant_id)
        other = mint_id()
        create_tenant(stack.owner, other, "other")
        statements = "select count(*) as turns from turns; select 'a%' as percent where 'ab' like 'a%';"

        ours, percent = read_rows(_url(stack, stack.tenant_id), statements)
        theirs, _ = read_rows(_url(stack, other), statements)

        assert (ours.columns, theirs.rows, percent.rows) == (["turns"], [(0,)], [("a%",)])
        assert ours.rows[0][0] > 0

    @pytest.mark.parametrize("writing", ["delete from memoryos.turn", "create table memory_v1.x (a int)"])
    def test_nothing_is_written(self, stack: Stack, writing: str) -> None:
        """The session is read-only whatever the role may do."""
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            read_rows(_url(stack, stack.tenant_id), writing)

    def test_options_that_were_there_are_kept(self) -> None:
        """A URL with a query of its own stays one URL."""
        url = reading_url("postgresql+psycopg://a:b@h/d?sslmode=require", mint_id())

        assert url.startswith("postgresql://a:b@h/d?sslmode=require&options=")
        assert json.dumps(url).count("?") == 1
