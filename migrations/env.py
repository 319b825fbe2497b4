"""Alembic environment: one connection, given by the caller, an advisory lock, short lock waits."""

from alembic import context
from sqlalchemy import Connection

MIGRATION_LOCK = 7_215_001


def run(connection: Connection) -> None:
    """Migrate over `connection`, one migrator at a time."""
    connection.exec_driver_sql("set lock_timeout = '5s'")
    connection.exec_driver_sql(f"select pg_advisory_lock({MIGRATION_LOCK})")
    connection.commit()
    try:
        context.configure(connection=connection, version_table="schema_version", transaction_per_migration=True)
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()
    finally:
        connection.rollback()
        connection.exec_driver_sql(f"select pg_advisory_unlock({MIGRATION_LOCK})")
        connection.commit()


run(context.config.attributes["connection"])
