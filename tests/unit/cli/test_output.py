"""What commands say when the database cannot be used names what to do."""

import pytest
from sqlalchemy.exc import DBAPIError

from memoryos_pipeline.cli.output import database_trouble


class DriverError(Exception):
    """What a driver would say."""

    sqlstate = "0A000"


class TestTrouble:
    @pytest.mark.parametrize(("name", "hint"), [("vector", "pgvector"), ("other", "no extension other;")])
    def test_a_missing_extension_is_named(self, name: str, hint: str) -> None:
        """A server without pgvector: what is missing, where to get it, and what to run then."""
        cause = DriverError(f'extension "{name}" is not available\nDETAIL:  Could not open extension control file')
        told = database_trouble(DBAPIError("create extension", None, cause))

        assert hint in told
        assert told.endswith("run `memoryos migrate`")
