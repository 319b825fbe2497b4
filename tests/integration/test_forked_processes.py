"""Processes that were forked from one that had used everything share nothing with it, nor with one another."""

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text

from memoryos_pipeline.store.clock import read_now
from tests.conftest import Stack
from workers import runtime

CHILDREN, THREADS, QUERIES = 4, 4, 250
WAIT_SECONDS = 60.0
ECHO = text("select :asked, cast(current_setting('app.tenant') as uuid)")


def _ask(stack: Stack, child: int) -> int:
    """Ask as many questions as a child has, four at a time, of its own runtime; return how many came back wrong."""
    parts = runtime.get_runtime().parts

    def ask(number: int) -> bool:
        asked = f"{child} asks {number}"
        with parts.database.transaction(stack.tenant_id) as connection:
            return tuple(connection.execute(ECHO, {"asked": asked}).one()) != (asked, stack.tenant_id)

    with ThreadPoolExecutor(THREADS) as threads:
        return sum(threads.map(ask, range(QUERIES)))


def _live(stack: Stack, child: int, told: Any) -> None:
    parent = runtime._runtime[0]
    wrong = _ask(stack, child)
    own = runtime.get_runtime()
    told.put((own is not parent, own.pid == os.getpid(), own.parts.database is not parent.parts.database, wrong))
    os._exit(0)


class TestFork:
    def test_children_have_engines_of_their_own(self, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
        """A thousand questions at once from four children of a process in use: each gets its own answer."""
        for name, role in (("DATABASE", "app"), ("LEDGER", "ledger"), ("OWNER", "owner")):
            monkeypatch.setenv(f"MEMORYOS_{name}_URL", stack.url(role))
        monkeypatch.setenv("MEMORYOS_EMBEDDER", "hashing")
        monkeypatch.setenv("MEMORYOS_LANGUAGE_MODEL", "extractive")
        runtime.forget_runtime()
        parent = runtime.get_runtime()
        with parent.parts.database.transaction(stack.tenant_id) as connection:
            read_now(connection)
        fork = multiprocessing.get_context("fork")
        told = fork.SimpleQueue()
        children = [fork.Process(target=_live, args=(stack, child, told)) for child in range(CHILDREN)]
        for child in children:
            child.start()
        for child in children:
            child.join(WAIT_SECONDS)
        left = _ask(stack, CHILDREN)
        parent.keeper.stop()
        parent.parts.database.dispose()
        parent.ledger_database.dispose()
        runtime.forget_runtime()

        assert [child.exitcode for child in children] == [0] * CHILDREN
        assert [told.get() for _ in children] == [(True, True, True, 0)] * CHILDREN
        assert left == 0
