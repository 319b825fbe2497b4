"""Create the whole first schema: clock, tenants, turns, pages, knowledge, search, work, row level security."""

from migrations.run_sql import run_sql_folder

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_sql_folder("0001")


def downgrade() -> None:
    raise NotImplementedError("the first schema holds the memory itself; restore a backup instead")
