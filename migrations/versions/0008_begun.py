"""Tell what a worker had begun from what it had only claimed."""

from migrations.run_sql import run_sql_folder

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    run_sql_folder("0008")


def downgrade() -> None:
    raise NotImplementedError("older code does not look at the column; leave it in place")
