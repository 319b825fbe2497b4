"""Let every scope act under its own policy: heat by tick, eviction, expiry, rollups, and the past as it was."""

from migrations.run_sql import run_sql_folder

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    run_sql_folder("0005")


def downgrade() -> None:
    raise NotImplementedError("what a policy did is history; restore a backup instead")
