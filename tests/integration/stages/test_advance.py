"""Sealing pages on a real Postgres."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest

from memoryos_pipeline.domain.errors import FencedError
from memoryos_pipeline.domain.ids import page_id
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.stages import advance as advance_module
from memoryos_pipeline.stages.advance import advance
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.ledger import owe
from tests.builders import START, claim_due, close, create_scope, numbered, record, rows, set_clock
from tests.conftest import Stack
from tests.doubles import HashtagModel

PAGES = "select first_seq, last_seq from memoryos.page order by conversation_id, first_seq"
SEALED = "select sealed_through from memoryos.conversation"


def _parts(stack: Stack) -> Parts:
    return Parts(stack.app, HashingEmbedder(), HashtagModel())


def _claim(stack: Stack, lease_seconds: float = 60) -> Lease:
    return claim_due(stack, WorkKind.ADVANCE, lease_seconds=lease_seconds)[0]


def _owe(stack: Stack, conversation: UUID) -> None:
    with stack.app.transaction(stack.tenant_id) as connection:
        owed = Owed(WorkKind.ADVANCE, str(conversation), create_scope(stack))
        owe(connection, stack.tenant_id, [owed])


class TestAdvance:
    def test_the_oldest_page_leaves_and_owes_its_work(self, stack: Stack) -> None:
        """After 13 messages page 1-5 exists with an event, a summary and vectors owed, and 8 turns stay hot."""
        conversation = record(stack, *numbered(13))
        advance(_parts(stack), _claim(stack))
        page = page_id(conversation, 1)

        assert rows(stack, PAGES) == [(1, 5)]
        assert rows(stack, SEALED) == [(5,)]
        assert rows(stack, "select kind, subject_key from memoryos.work where state = 'ready' order by kind") == [
            ("embed", f"turns:{page}"),
            ("summarize", str(page)),
        ]
        query = "select subject_id, conversation_id, seq, amount from memoryos.event where kind = 'page_sealed'"
        assert rows(stack, query) == [(page, conversation, 5, 5.0)]

    def test_any_batching_of_requests_gives_the_same_pages(self, stack: Stack) -> None:
        """Twenty-eight turns in one request or in seven, advanced each time: the same pages."""
        together = record(stack, *numbered(28), conversation="together")
        advance(_parts(stack), _claim(stack))
        for n in range(7):
            start = START + timedelta(minutes=4 * n)
            apart = record(stack, *numbered(4), conversation="apart", start=start, first=4 * n + 1)
            for lease in claim_due(stack, WorkKind.ADVANCE):
                advance(_parts(stack), lease)
        spans = "select first_seq, last_seq from memoryos.page where conversation_id = :id order by first_seq"

        assert rows(stack, spans, id=together) == rows(stack, spans, id=apart)
        assert rows(stack, spans, id=apart)[-1] == (16, 20)

    def test_an_idle_conversation_is_sealed_whole(self, stack: Stack) -> None:
        """Three turns and thirty minutes of silence by the database clock make a short page; not a second less."""
        set_clock(stack, START)
        conversation = record(stack, *numbered(3))
        for minutes, expected in ((29, []), (30, [(1, 3)])):
            set_clock(stack, START + timedelta(minutes=minutes))
            _owe(stack, conversation)
            advance(_parts(stack), _claim(stack))
            assert rows(stack, PAGES) == expected

    def test_closing_twice_seals_once(self, stack: Stack) -> None:
        """An explicit end seals the short rest; a second end changes nothing."""
        conversation = record(stack, *numbered(3))
        for _ in range(2):
            close(stack, conversation)
            advance(_parts(stack), _claim(stack))

        assert rows(stack, PAGES) == [(1, 3)]
        assert rows(stack, "select count(*) from memoryos.event where kind = 'page_sealed'") == [(1,)]

    def test_a_long_backlog_is_sealed_in_several_runs(self, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
        """A run that did not see every turn owes the next one, and the pages are the same as in one run."""
        monkeypatch.setattr(advance_module, "TURNS_PER_RUN", 20)
        record(stack, *numbered(40))
        runs = 0
        while due := claim_due(stack, WorkKind.ADVANCE):
            advance(_parts(stack), due[0])
            runs += 1

        assert runs > 1
        assert rows(stack, PAGES) == [(n, n + 4) for n in range(1, 30, 5)]

    def test_erased_turns_do_not_keep_a_conversation_open(self, stack: Stack) -> None:
        """With its last turns gone, a flush still closes the tail, or it would be due for ever."""
        conversation = record(stack, *numbered(3))
        rows(stack, "delete from memoryos.turn returning seq")
        set_clock(stack, START + timedelta(days=400))
        _owe(stack, conversation)
        advance(_parts(stack), _claim(stack))

        assert (rows(stack, PAGES), rows(stack, SEALED)) == ([], [(3,)])


class TestConcurrency:
    def test_a_late_run_leaves_nothing(self, stack: Stack) -> None:
        """A worker whose lease was taken over is fenced, and its pages, events and work are rolled back."""
        record(stack, *numbered(13))
        late = _claim(stack, lease_seconds=0)
        current = _claim(stack)
        with pytest.raises(FencedError):
            advance(_parts(stack), late)
        assert rows(stack, PAGES) == []

        advance(_parts(stack), current)
        with pytest.raises(FencedError):
            advance(_parts(stack), current)
        assert rows(stack, PAGES) == [(1, 5)]
        assert rows(stack, "select count(*) from memoryos.event where kind = 'page_sealed'") == [(1,)]

    def test_a_wake_up_during_the_run_is_not_lost(self, stack: Stack) -> None:
        """Turns recorded after the claim raise the generation, so the row runs again and seals them."""
        record(stack, *numbered(13))
        lease = _claim(stack)
        record(stack, *numbered(10), first=14, start=START + timedelta(minutes=13))
        advance(_parts(stack), lease)
        again = _claim(stack)
        advance(_parts(stack), again)

        assert rows(stack, PAGES) == [(1, 5), (6, 10), (11, 15)]
        assert claim_due(stack, WorkKind.ADVANCE) == []

    def test_recording_and_sealing_at_once_lose_no_turn(self, stack: Stack) -> None:
        """While pages are sealed turns keep arriving: sequence and pages stay without gap or overlap."""

        def publish(n: int) -> None:
            record(stack, *numbered(3), first=3 * n + 1, start=START + timedelta(minutes=3 * n))

        def seal(_: int) -> None:
            for lease in claim_due(stack, WorkKind.ADVANCE):
                advance(_parts(stack), lease)

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda n: publish(n // 2) if n % 2 == 0 else seal(n), range(40)))
        seal(0)
        covered = [seq for first, last in rows(stack, PAGES) for seq in range(first, last + 1)]

        assert rows(stack, "select count(*), max(seq) from memoryos.turn") == [(60, 60)]
        assert covered == list(range(1, 51))

    def test_a_conversation_erased_meanwhile_ends_quietly(self, stack: Stack) -> None:
        """Erasing the scope takes the work row with it: the run is fenced and writes nothing."""
        record(stack, *numbered(13))
        lease = _claim(stack)
        rows(stack, "delete from memoryos.scope returning scope_id")
        with pytest.raises(FencedError):
            advance(_parts(stack), lease)

        assert rows(stack, PAGES) == []
