"""Tell the day of an event as whoever told of it would write it."""

from migrations.run_sql import run_sql_folder

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    run_sql_folder("0011")


def downgrade() -> None:
    raise NotImplementedError("views people query are not taken away; leave them in place")
