"""Run the SQL files of one revision, in name order, inside Alembic's transaction."""

from pathlib import Path

from alembic import op

SQL = Path(__file__).parent / "sql"


def run_sql_folder(revision: str) -> None:
    """Execute every `migrations/sql/<revision>/*.sql` as it stands; the driver sees no parameters."""
    connection = op.get_bind()
    for file in sorted((SQL / revision).glob("*.sql")):
        connection.exec_driver_sql(file.read_text(encoding="utf-8").replace("%", "%%"))
