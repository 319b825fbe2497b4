"""A pytest plugin that takes one safeguard out of this test process, and reports which tests noticed.

Used by `tests.faults.mutants`; without MEMORYOS_MUTANT it changes nothing.
"""

import json
import os
from pathlib import Path

import pytest
from sqlalchemy import text

from memoryos_pipeline.store import migrate as migrating
from memoryos_pipeline.store.database import Database
from tests.faults.mutants_table import MUTANTS

_failed: list[str] = []


def _apply() -> None:
    name = os.environ.get("MEMORYOS_MUTANT")
    if not name:
        return
    mutant = next(each for each in MUTANTS if each.name == name)
    for change in mutant.changes:
        change()
    if mutant.schema:
        _migrate_then(mutant.schema)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what failed in the test itself; a broken fixture is no catch."""
    if report.when == "call" and report.failed:
        _failed.append(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write down what failed."""
    path = os.environ.get("MEMORYOS_MUTANT_REPORT")
    if path:
        Path(path).write_text(json.dumps(_failed))


def _migrate_then(statements: str) -> None:
    migrate = migrating.migrate

    def migrate_and_change(owner: Database) -> None:
        migrate(owner)
        with owner.engine.begin() as connection:
            connection.execute(text(statements))

    migrating.migrate = migrate_and_change


_apply()  # on import: before conftest takes what it needs by name
