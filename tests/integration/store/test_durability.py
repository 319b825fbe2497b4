"""The doctor looks at what a database has room for, and at what its roles may hold on to."""

import pytest
from sqlalchemy import text

from memoryos_pipeline.store import durability
from memoryos_pipeline.store.durability import Check, check_durability
from tests.conftest import Stack


def _check(stack: Stack, name: str) -> Check:
    with stack.owner.across_tenants() as connection:
        return {check.name: check for check in check_durability(connection)}[name]


class TestRoom:
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
