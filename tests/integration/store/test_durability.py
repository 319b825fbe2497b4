"""The doctor looks at what a database has room for, and at what its roles may hold on to."""

import pytest
import typer
from sqlalchemy import text
from typer.testing import CliRunner

from memoryos_pipeline.cli import processes
from memoryos_pipeline.store import durability
from memoryos_pipeline.store.durability import Check, Room, check_durability, read_room
from tests.conftest import Stack
from workers import celery_app


def _check(stack: Stack, name: str) -> Check:
    with stack.owner.across_tenants() as connection:
        return {check.name: check for check in check_durability(connection)}[name]


class TestRoom:
    def test_connections_of_every_role_count(self, stack: Stack) -> None:
        """Whoever asks sees what others use, although the server shows little else of them."""
        with stack.app.across_tenants() as app, stack.ledger_database.across_tenants() as ledger:
            of_app, of_ledger = read_room(app), read_room(ledger)
            with stack.owner.across_tenants() as owner:
                of_owner = read_room(owner)
            assert of_owner.used >= 3
            assert of_owner.most == of_app.most == of_ledger.most

    def test_what_does_not_fit_says_what_to_change(self) -> None:
        """What is in use and what is wanted are told with it."""
        room = Room(used=90, most=97)

        assert room.trouble(7) is None
        assert "8 connections" in (told := room.trouble(8) or "")
        assert "MEMORYOS_DATABASE_POOL_SIZE" in told

    @pytest.mark.parametrize(("pool", "code"), [("2", 0), ("200", 1)])
    def test_a_worker_that_can_never_fit_does_not_start(
        self, stack: Stack, monkeypatch: pytest.MonkeyPatch, pool: str, code: int
    ) -> None:
        """It says why, and what to change; one that fits starts."""
        monkeypatch.setenv("MEMORYOS_LEDGER_URL", stack.url("ledger"))
        monkeypatch.setenv("MEMORYOS_DATABASE_POOL_SIZE", pool)
        started: list[list[str]] = []
        monkeypatch.setattr(celery_app.app, "worker_main", started.append)
        app = typer.Typer()
        app.command()(processes.worker)
        result = CliRunner().invoke(app, ["--pool", "prefork", "--concurrency", "3"])

        assert (result.exit_code, len(started)) == (code, 1 - code)
        assert ("may open 612 connections" in result.stderr) == bool(code)

    def test_connections_in_use_are_told(self, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
        """A server with room is good; one that is nearly full says what to change."""
        assert _check(stack, "connections").is_good

        monkeypatch.setattr(durability, "FULL_SHARE", 0.0)
        full = _check(stack, "connections")
        assert not full.is_good
        assert "MEMORYOS_DATABASE_POOL_SIZE" in full.sentence

    def test_a_role_without_a_bound_is_told(self, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nobody of ours may sit in a transaction for ever; a role that may is named."""
        assert _check(stack, "idle transactions").is_good

        unbounded = text(durability.UNBOUNDED_ROLES.text.replace("memoryos_ledger", "memoryos_reader"))
        monkeypatch.setattr(durability, "UNBOUNDED_ROLES", unbounded)
        assert _check(stack, "idle transactions").sentence.startswith("memoryos_reader may")
