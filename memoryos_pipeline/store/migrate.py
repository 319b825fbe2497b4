"""Bring a database to the newest schema, and prepare a fresh cluster's roles."""

from pathlib import Path

from alembic.command import upgrade
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

import migrations
from memoryos_pipeline.store.database import Database


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    return config


def migrate(owner: Database) -> None:
    """Run every migration that is missing; safe to call from several processes at once."""
    config = _config()
    with owner.engine.connect() as connection:
        config.attributes["connection"] = connection
        upgrade(config, "head")


def pending_migrations(database: Database) -> bool:
    """Tell whether the schema is older than this code."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "schema_version"})
        return context.get_current_revision() != head
