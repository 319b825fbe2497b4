"""Know which statements name an entity."""

from migrations.run_sql import run_sql_folder

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    run_sql_folder("0012")


def downgrade() -> None:
    raise NotImplementedError("names would outlive what said them; leave the table in place")
