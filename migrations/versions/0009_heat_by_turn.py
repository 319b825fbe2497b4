"""Let page heat fall with the turns of the user."""

from migrations.run_sql import run_sql_folder

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    run_sql_folder("0009")


def downgrade() -> None:
    raise NotImplementedError("what was counted would be lost; leave the columns in place")
