"""Index hot turns ahead of their page."""

from migrations.run_sql import run_sql_folder

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    run_sql_folder("0007")


def downgrade() -> None:
    raise NotImplementedError("index rows of hot turns would be orphans; leave the column in place")
