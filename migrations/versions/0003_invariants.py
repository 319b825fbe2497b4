"""Write the invariants down as views: empty is good, a row says what is wrong and what repairs it."""

from migrations.run_sql import run_sql_folder

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run_sql_folder("0003")


def downgrade() -> None:
    raise NotImplementedError("the invariants only read; leave them in place")
