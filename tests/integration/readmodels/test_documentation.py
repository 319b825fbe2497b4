"""The read models explain themselves, and the page about them is what the database says."""

import re
from pathlib import Path

from memoryos_pipeline.readmodels.documentation import COLUMNS, render_documentation
from memoryos_pipeline.store.reading_sql import read_rows, reading_url
from tests.conftest import Stack

PAGE = Path(__file__).parents[3] / "docs" / "read-models.md"
PROMISED = {
    "turns", "hot_turns", "pages", "segments", "knowledge", "knowledge_history", "links", "profile", "conversations",
    "work", "pipeline_lag", "events", "rollups", "verdicts", "relations", "entities",
}  # fmt: skip


class TestDescribe:
    def test_every_view_and_column_has_a_comment(self, stack: Stack) -> None:
        """Nobody has to guess what a column means."""
        with stack.app.across_tenants() as connection:
            rows = connection.execute(COLUMNS).all()

        assert {row.view for row in rows} == PROMISED
        assert [(row.view, row.column) for row in rows if not row.about or not row.meaning] == []

    def test_the_page_says_what_the_database_says(self, stack: Stack) -> None:
        """docs/read-models.md is written from the comments; write it again when this fails."""
        with stack.app.across_tenants() as connection:
            assert PAGE.read_text(encoding="utf-8") == render_documentation(connection)

    def test_every_query_of_the_page_runs(self, stack: Stack) -> None:
        """Each select can be copied; a reader without tables of their own gets its columns."""
        queries = re.findall(r"^select [^;]*;", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
        examples = [query for query in queries if "set_config" not in query]
        answers = read_rows(reading_url(stack.url("app"), stack.tenant_id), "\n".join(examples))

        assert len(answers) == len(examples) >= 8
        assert all(answer.columns for answer in answers)

    def test_no_view_runs_with_its_owners_rights(self, stack: Stack) -> None:
        """A view that is not a security invoker would show every tenant to everybody."""
        with stack.app.across_tenants() as connection:
            loose = connection.exec_driver_sql(
                "select relname from pg_class where relkind in ('v', 'm')"
                " and relnamespace in ('memory_v1'::regnamespace, 'memoryos'::regnamespace)"
                " and not coalesce(reloptions @> '{security_invoker=true}', false)"
            ).scalars()
            assert loose.all() == []
