"""Give readers a schema of their own, memory_v1, and map SQL logins to one tenant each."""

from migrations.run_sql import run_sql_folder

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run_sql_folder("0002")


def downgrade() -> None:
    raise NotImplementedError("readers depend on memory_v1; a change of it is a new schema beside it")
