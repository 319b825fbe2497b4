"""Whatever breaks off on the way of a memory is begun again, and ends as if nothing had happened."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, event, text

from memoryos_pipeline.domain.errors import ErasedScopeError, FencedError, ModelUnavailableError, StaleReadError
from memoryos_pipeline.domain.ids import scope_id
from memoryos_pipeline.domain.knowledge import Distillate
from memoryos_pipeline.domain.pages import PageSummary, PageText
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.models.protocols import Journal
from memoryos_pipeline.pipeline import STAGES
from memoryos_pipeline.readmodels.invariants import find_violations
from memoryos_pipeline.recall.search import search
from memoryos_pipeline.stages.erase_user import erase_user
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.erasure import TABLES_OF_A_SCOPE
from tests.builders import claim_due, close, record, rows
from tests.builders_recall import ask
from tests.conftest import Stack

SAID = (
    "I live in Porto.", "Porto sounds lovely, walrus.", "My dog is called Miso.", "Noted, zeppelin.",
    "I moved to Kyoto.", "I will remember, quokka.", "My dog is called Miso.", "Yes, the xylophone dog.",
)  # fmt: skip
ONE_PAGE = SAID[:4]
WORDS = ("Porto", "walrus", "zeppelin", "quokka", "Kyoto", "xylophone")
SMALL = Policy(hot_capacity_turns=4, page_size_turns=4, distill_when="sealed")
DERIVED = (
    """select k.content, k.version, k.status, k.valid_from, k.valid_to, k.importance, k.slot, n.content
         from memoryos.knowledge k
         left join memoryos.knowledge n on n.tenant_id = k.tenant_id and n.knowledge_id = k.superseded_by
        where k.scope_id = :scope order by 1, 2""",
    """select k.content, s.seq
         from memoryos.knowledge_source s join memoryos.knowledge k using (tenant_id, knowledge_id)
        where k.scope_id = :scope order by 1, 2""",
    """select decision, new_content, old_content from memoryos.verdict where scope_id = :scope order by 1, 2, 3""",
    """select first_seq, last_seq, summary, meta_summary, tier, extract_ordinal, knowledge_count, extracted_by
         from memoryos.page where scope_id = :scope order by 1""",
    """select page_count, keywords from memoryos.segment where scope_id = :scope order by 1, 2""",
    """select term, owner_kind, tf, count(*) from memoryos.posting where scope_id = :scope group by 1, 2, 3
        order by 1, 2, 3""",
    """select owner_kind, cast(vec as text) from memoryos.embedding where scope_id = :scope order by 1, 2""",
    """select dimension, level, confidence, version from memoryos.trait where scope_id = :scope order by 1, 2""",
    """select name_norm, type, mentions from memoryos.entity where scope_id = :scope order by 1, 2""",
    """select kind, count(*) from memoryos.event where scope_id = :scope group by 1 order by 1""",
    """select extract_ordinal, merged_ordinal from memoryos.scope where scope_id = :scope""",
    """select count(*) from memoryos.candidate where scope_id = :scope""",
)
"""What a memory comes to, without the ids and clocks that differ from one user to the next."""
STRANGERS = """
    select 'source' from memoryos.knowledge_source s
      join memoryos.knowledge k using (tenant_id, knowledge_id)
      join memoryos.turn t on t.tenant_id = s.tenant_id and t.conversation_id = s.conversation_id and t.seq = s.seq
     where t.scope_id <> k.scope_id
    union all select 'page' from memoryos.knowledge_source s
      join memoryos.knowledge k using (tenant_id, knowledge_id) join memoryos.page p using (tenant_id, page_id)
     where p.scope_id <> k.scope_id
    union all select 'successor' from memoryos.knowledge k
      join memoryos.knowledge n on n.tenant_id = k.tenant_id and n.knowledge_id = k.superseded_by
     where n.scope_id <> k.scope_id
    union all select 'lineage' from memoryos.knowledge k
      join memoryos.knowledge n on n.tenant_id = k.tenant_id and n.lineage_id = k.lineage_id
     where n.scope_id <> k.scope_id
    union all select 'link' from memoryos.knowledge_link l
      join memoryos.knowledge a on a.tenant_id = l.tenant_id and a.knowledge_id = l.source_id
      join memoryos.knowledge b on b.tenant_id = l.tenant_id and b.knowledge_id = l.target_id
     where a.scope_id <> b.scope_id
    union all select 'segment' from memoryos.page_segment m
      join memoryos.page p using (tenant_id, page_id) join memoryos.segment g using (tenant_id, segment_id)
     where p.scope_id <> g.scope_id
    union all select 'index' from memoryos.embedding e
      join memoryos.knowledge k on k.tenant_id = e.tenant_id and k.knowledge_id = e.owner_id
     where e.scope_id <> k.scope_id
"""
"""Rows that lead from one memory into another."""


TABLES = TABLES_OF_A_SCOPE
WRITES = ("insert", "update", "delete")


class CutOffError(Exception):
    """The connection went away at the moment of a commit."""


class Cutter:
    """Lets the nth commit of the application that wrote something fail, once."""

    def __init__(self, nth: int) -> None:
        self.nth, self.commits = nth, 0

    def note(self, connection: Connection, _: Any, statement: str, *__: Any) -> None:
        connection.info["wrote"] = connection.info.get("wrote") or statement.lstrip()[:6] in WRITES

    def cut(self, connection: Connection) -> None:
        if not connection.info.pop("wrote", False):
            return
        self.commits += 1
        if self.commits == self.nth:
            raise CutOffError


class Eraser(Cutter):
    """Lets a user be erased between the nth commit and whatever comes next: while a stage thinks, mostly."""

    def __init__(self, nth: int, erase: Callable[[], object]) -> None:
        super().__init__(nth)
        self._erase = erase

    def cut(self, connection: Connection) -> None:
        wrote = connection.info.pop("wrote", False)
        self.commits += bool(wrote)

    def begin(self, _: Connection) -> None:
        if self.commits == self.nth:
            erase, self._erase = self._erase, lambda: None
            erase()


@contextmanager
def _erasing(stack: Stack, nth: int, user: str) -> Iterator[Eraser]:
    database, engine = Database(stack.url("app"), pool_size=1), stack.app.engine
    eraser = Eraser(nth, lambda: erase_user(database, stack.tenant_id, user))
    heard = (("before_cursor_execute", eraser.note), ("commit", eraser.cut), ("begin", eraser.begin))
    for name, listener in heard:
        event.listen(engine, name, listener)
    try:
        yield eraser
    finally:
        for name, listener in heard:
            event.remove(engine, name, listener)
        database.dispose()


@contextmanager
def _cutting(stack: Stack, nth: int) -> Iterator[Cutter]:
    cutter, engine = Cutter(nth), stack.app.engine
    event.listen(engine, "before_cursor_execute", cutter.note)
    event.listen(engine, "commit", cutter.cut)
    try:
        yield cutter
    finally:
        event.remove(engine, "commit", cutter.cut)
        event.remove(engine, "before_cursor_execute", cutter.note)


@dataclass
class AbsentModel(ExtractiveModel):
    """The model of rules, behind a provider that is away for a while."""

    embedder: HashingEmbedder = field(default_factory=HashingEmbedder)
    is_away: bool = True

    def __post_init__(self) -> None:
        super().__init__(self.embedder)

    def summarize(self, page: PageText, *, journal: Journal) -> PageSummary:
        """Summarize, if anybody is there."""
        self._be_there()
        return super().summarize(page, journal=journal)

    def distill(self, page: PageText, *, journal: Journal) -> Distillate:
        """Distill, if anybody is there."""
        self._be_there()
        return super().distill(page, journal=journal)

    def _be_there(self) -> None:
        if self.is_away:
            raise ModelUnavailableError


def _parts(stack: Stack, model: ExtractiveModel | None = None) -> Parts:
    embedder = HashingEmbedder()
    return Parts(stack.app, embedder, model or ExtractiveModel(embedder), SMALL)


def _work(stack: Stack, parts: Parts, *, kinds: tuple[WorkKind, ...] = tuple(WorkKind)) -> int:
    """Do what is due once; whatever breaks off is free again. Return how many rows ended well."""
    done = 0
    for lease in (lease for kind in kinds for lease in claim_due(stack, kind)):
        try:
            STAGES[lease.kind](parts, lease)
            done += 1
        except (CutOffError, ModelUnavailableError, FencedError, StaleReadError):
            stack.ledger.release([lease])
    return done


def _drain(stack: Stack, parts: Parts) -> None:
    while _is_owed(stack):
        _work(stack, parts)


def _is_owed(stack: Stack) -> bool:
    with stack.ledger_database.across_tenants() as connection:
        return connection.execute(text("select 1 from memoryos.work where state = 'ready' limit 1")).first() is not None


def _tell(stack: Stack, user: str, said: Sequence[str] = SAID) -> UUID:
    close(stack, record(stack, *said, user_id=user, policy=SMALL), user)
    return scope_id(stack.tenant_id, user, "companion")


def _derived(stack: Stack, scope: UUID) -> list[list[tuple[Any, ...]]]:
    return [rows(stack, query, scope=scope) for query in DERIVED]


def _violations(stack: Stack) -> list[Any]:
    with stack.app.transaction(stack.tenant_id) as connection:
        return list(find_violations(connection, stack.tenant_id, at_rest=True))


class TestBreakOff:
    def test_every_commit_can_fail(self, stack: Stack) -> None:
        """A session is processed as often as it has commits, each time with another one failing: all end alike."""
        parts = _parts(stack)
        scope = _tell(stack, "whole")
        with _cutting(stack, 0) as counted:
            _drain(stack, parts)
        whole = _derived(stack, scope)
        assert all(whole[:8])
        for nth in range(1, counted.commits + 1):
            scope = _tell(stack, f"cut {nth}")
            with _cutting(stack, nth) as cutter:
                _drain(stack, parts)
            assert cutter.commits > nth
            assert _derived(stack, scope) == whole, nth

        assert _violations(stack) == []
        assert rows(stack, STRANGERS) == []


class TestErase:
    def test_nothing_comes_back_wherever_it_falls(self, stack: Stack) -> None:
        """Erased between any two steps of the way: whoever was at work leaves no row, a new start is refused."""
        parts = _parts(stack)
        _tell(stack, "whole", ONE_PAGE)
        with _cutting(stack, 0) as counted:
            _drain(stack, parts)
        for nth in range(counted.commits):
            user = f"gone {nth}"
            scope = _tell(stack, user, ONE_PAGE)
            with _erasing(stack, nth, user):
                _drain(stack, parts)
            left = [rows(stack, f"select 1 from memoryos.{name} where scope_id = :s", s=scope) for name in TABLES]
            assert left == [[]] * len(TABLES), (nth, left)
            with pytest.raises(ErasedScopeError):
                _tell(stack, user, ONE_PAGE)

        assert rows(stack, "select count(*) from memoryos.erasure_receipt") == [(counted.commits,)]


class TestRaw:
    def test_every_turn_is_found_at_every_step(self, stack: Stack) -> None:
        """From its recording until long after its distillation a turn is found by its own word, as it was said."""
        parts = _parts(stack)
        _tell(stack, "maya")
        kinds: list[str] = []
        while True:
            for word in WORDS:
                found = search(parts, stack.tenant_id, ask(word, kinds=("turn",), limit=1)).results
                assert [word in result.content for result in found] == [True], (word, kinds)
            leases = claim_due(stack)
            if not leases:
                break
            stack.ledger.release(leases[1:])
            STAGES[leases[0].kind](parts, leases[0])
            kinds.append(str(leases[0].kind))

        assert set(kinds) == {"advance", "embed", "summarize", "segment", "distill", "merge"}


class TestWithoutAModel:
    def test_memory_goes_on_and_catches_up(self, stack: Stack) -> None:
        """While no model answers turns are taken, sealed, indexed and found; later all is as it would have been."""
        whole = _tell(stack, "whole")
        _drain(stack, _parts(stack))
        model = AbsentModel()
        parts = _parts(stack, model)
        scope = _tell(stack, "maya")
        for _ in range(4):
            _work(stack, parts)
        waiting = rows(stack, "select distinct kind from memoryos.work where state = 'ready' order by 1")
        best = search(parts, stack.tenant_id, ask("Where is the quokka?", limit=1)).results[0]
        indexed = rows(stack, "select bool_and(indexed_at is not null) from memoryos.page where scope_id = :s", s=scope)
        model.is_away = False
        _drain(stack, parts)

        assert (waiting, indexed, "quokka" in best.content) == ([("summarize",)], [(True,)], True)
        assert _derived(stack, scope) == _derived(stack, whole)


class TestOrder:
    def test_whichever_kind_is_worked_off_first(self, stack: Stack) -> None:
        """Vectors before summaries or after them, each piece of work done twice: the same memory."""
        parts = _parts(stack)
        scope = _tell(stack, "whole")
        _drain(stack, parts)
        whole = _derived(stack, scope)
        again = "update memoryos.work set state = 'ready', generation = generation + 1 where scope_id = :s returning 1"
        for first in (WorkKind.EMBED, WorkKind.SUMMARIZE):
            scope = _tell(stack, f"{first} first")
            _work(stack, parts, kinds=(WorkKind.ADVANCE,))
            while _work(stack, parts, kinds=(first,)) or _work(stack, parts):
                pass
            rows(stack, again, s=scope)
            _drain(stack, parts)
            assert _derived(stack, scope) == whole, first
