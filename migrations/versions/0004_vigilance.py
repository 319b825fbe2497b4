"""Let the ledger say more: pauses, alarms, counters, budgets, a lag view that reads only what is open."""

from migrations.run_sql import run_sql_folder

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    run_sql_folder("0004")


def downgrade() -> None:
    raise NotImplementedError("code of this version needs what was added; run it with the older code beside it")
