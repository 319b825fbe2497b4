"""Put what ranking asks of every candidate into the index rows."""

from migrations.run_sql import run_sql_folder

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    run_sql_folder("0006")


def downgrade() -> None:
    raise NotImplementedError("the columns are derived from turns; leave them in place")
