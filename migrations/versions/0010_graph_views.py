"""Read decisions, relations and entities by SQL."""

from migrations.run_sql import run_sql_folder

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    run_sql_folder("0010")


def downgrade() -> None:
    raise NotImplementedError("views people query are not taken away; leave them in place")
