"""Indexing turns, summaries and knowledge on a real Postgres."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.errors import FencedError, StaleReadError
from memoryos_pipeline.domain.ids import mint_id, page_id
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.models.protocols import Embedded
from memoryos_pipeline.stages.advance import advance
from memoryos_pipeline.stages.embed import embed
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.pages import find_page, lock_conversation, mark_indexed
from memoryos_pipeline.store.vectors import ensure_space, nearest
from tests.builders import claim_due, close, count_statements, create_scope, numbered, record, rows, wait_for_a_waiter
from tests.conftest import Stack
from tests.doubles import HashtagModel

INDEXED = "select indexed_through from memoryos.conversation"
OWNERS = """
    select e.owner_kind, e.owner_id from memoryos.embedding e
      join memoryos.posting_length l on l.tenant_id = e.tenant_id and l.owner_id = e.owner_id
     order by 1, 2
"""
ADD_KNOWLEDGE = """
    insert into memoryos.knowledge (tenant_id, knowledge_id, scope_id, lineage_id, kind, content, content_sha256, lang,
        actor, importance, strength_days, turn_at, valid_from, extracted_by, status, forgotten_at)
    values (:tenant_id, :id, :scope_id, :id, 'fact', :content, decode(md5(:content), 'hex'), 'ja', 'Maya', 0.5, 50,
        now(), now(), 'test', :status, case when :status = 'forgotten' then now() end)
    returning knowledge_id
"""
CITE = """
    insert into memoryos.knowledge_source (tenant_id, knowledge_id, conversation_id, seq, page_id)
    values (:tenant_id, :knowledge, :conversation, :seq, :page) returning seq
"""


class WatchingEmbedder(HashingEmbedder):
    """Embeds, after doing something else meanwhile; keeps what it was asked."""

    def __init__(self, meanwhile: object = None) -> None:
        self.meanwhile = meanwhile
        self.texts: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> list[Embedded]:
        """Do the other thing, then embed."""
        self.texts += texts
        if callable(self.meanwhile):
            self.meanwhile()
        return super().embed_passages(texts)


def _parts(stack: Stack, embedder: HashingEmbedder | None = None) -> Parts:
    return Parts(stack.app, embedder or HashingEmbedder(), HashtagModel())


def _sealed(stack: Stack, count: int, **options: object) -> list[UUID]:
    """Record and seal; return the pages."""
    conversation = record(stack, *numbered(count), **options)  # type: ignore[arg-type]
    for lease in claim_due(stack, WorkKind.ADVANCE):
        advance(_parts(stack), lease)
    return [page_id(conversation, first) for first in range(1, count - 11, 5)]


def _claim_embed(stack: Stack, subject: str, *, lease_seconds: float = 60) -> Lease:
    with stack.app.transaction(stack.tenant_id) as connection:
        owe(connection, stack.tenant_id, [Owed(WorkKind.EMBED, subject, create_scope(stack))])
    with stack.ledger_database.across_tenants() as connection:
        query = text("select work_id from memoryos.work where subject_key = :subject")
        ids = connection.execute(query, {"subject": subject}).scalars().all()
    return stack.ledger.claim(ids, owner="test", lease_seconds=lease_seconds)[0]


def _summarize(stack: Stack, page: UUID, summary: str) -> None:
    rows(stack, "update memoryos.page set summary = :s where page_id = :p returning 1", s=summary, p=page)


class TestEmbedTurns:
    def test_every_turn_of_the_page_becomes_findable(self, stack: Stack) -> None:
        """Vectors and postings of the five turns exist, and the nearest to a turn's text is that turn."""
        (page,) = _sealed(stack, 13)
        embedder = HashingEmbedder()
        embed(_parts(stack), _claim_embed(stack, f"turns:{page}"))
        turns = dict(rows(stack, "select seq, turn_id from memoryos.turn order by seq limit 5"))

        assert rows(stack, OWNERS) == sorted(("turn", turn) for turn in turns.values())
        assert rows(stack, INDEXED) == [(5,)]
        with stack.app.transaction(stack.tenant_id) as connection:
            scope, space = create_scope(stack), ensure_space(connection, embedder)
            query = embedder.embed_query(numbered(13)[2])
            found = nearest(connection, stack.tenant_id, scope, space, ["turn"], query, 2)
        assert (found[0][1], round(found[0][2], 2)) == (turns[3], 1.0)
        assert found[0][2] > found[1][2]
        assert rows(stack, "select owner_id, owner_kind from memoryos.posting where term = '3'") == [(turns[3], "turn")]

    @pytest.mark.parametrize("content", ["昨日、大阪に引っ越しました", "어제 대구로 이사했어요", "昨天我搬到了成都"])
    def test_any_language_is_findable_by_words(self, stack: Stack, content: str) -> None:
        """Japanese, Korean and Chinese turns have postings and vectors like English ones."""
        record(stack, content, *numbered(12))
        advance(_parts(stack), claim_due(stack, WorkKind.ADVANCE)[0])
        (lease,) = claim_due(stack, WorkKind.EMBED)
        embed(_parts(stack), lease)
        query = """
            select l.terms > 1 from memoryos.posting_length l
              join memoryos.turn t on t.turn_id = l.owner_id where t.seq = 1
        """

        assert rows(stack, query) == [(True,)]

    def test_the_speaker_stays_out_of_the_vector(self, stack: Stack) -> None:
        """Only what was said is embedded: names would dominate the vectors of short turns."""
        embedder = WatchingEmbedder()
        (page,) = _sealed(stack, 13)
        embed(_parts(stack, embedder), _claim_embed(stack, f"turns:{page}"))

        assert embedder.texts == numbered(5)

    def test_what_recall_injected_is_not_indexed(self, stack: Stack) -> None:
        """Turns of kind `recalled` are kept and never found, so recall cannot feed on itself."""
        (page,) = _sealed(stack, 13, kind="recalled")
        embed(_parts(stack), _claim_embed(stack, f"turns:{page}"))

        assert (rows(stack, OWNERS), rows(stack, INDEXED)) == ([], [(5,)])

    def test_the_indexed_prefix_has_no_hole(self, stack: Stack) -> None:
        """Pages indexed out of order: the prefix waits for the first one, then passes all of them."""
        pages = _sealed(stack, 23)
        for page, expected in ((pages[2], 0), (pages[0], 5), (pages[1], 15)):
            embed(_parts(stack), _claim_embed(stack, f"turns:{page}"))
            assert rows(stack, INDEXED) == [(expected,)]

    def test_embedding_again_changes_nothing(self, stack: Stack) -> None:
        """A second run of the same subject leaves the same rows."""
        (page,) = _sealed(stack, 13)
        postings = "select term, owner_id, tf from memoryos.posting order by 1, 2"
        embed(_parts(stack), _claim_embed(stack, f"turns:{page}"))
        first = rows(stack, postings), rows(stack, OWNERS)
        embed(_parts(stack), _claim_embed(stack, f"turns:{page}"))

        assert (rows(stack, postings), rows(stack, OWNERS)) == first

    def test_a_forgotten_turn_does_not_come_back(self, stack: Stack) -> None:
        """Re-embedding an archived page leaves out the turn whose every knowledge is forgotten, and only it."""
        (page,) = _sealed(stack, 13)
        scope = create_scope(stack)
        ((conversation,),) = rows(stack, "select conversation_id from memoryos.conversation")
        for seq, status in ((1, "forgotten"), (2, "forgotten"), (2, "active")):
            key = {"tenant_id": stack.tenant_id, "id": mint_id(), "scope_id": scope}
            rows(stack, ADD_KNOWLEDGE, **key, content=f"{seq} {status}", status=status)
            cited = {"tenant_id": stack.tenant_id, "knowledge": key["id"], "conversation": conversation}
            rows(stack, CITE, **cited, seq=seq, page=page)
        rows(stack, "update memoryos.page set tier = 'archived', extracted_at = now() returning 1")
        embed(_parts(stack), _claim_embed(stack, f"turns:{page}"))
        query = "select seq from memoryos.turn join memoryos.embedding on owner_id = turn_id order by seq"

        assert rows(stack, query) == [(2,), (3,), (4,), (5,)]


class TestEmbedSummary:
    def test_the_summary_is_indexed_and_a_segment_is_owed(self, stack: Stack) -> None:
        """The page itself becomes findable, and its scope gets segment work."""
        (page,) = _sealed(stack, 13)
        _summarize(stack, page, "Maya talks about numbers.")
        embed(_parts(stack), _claim_embed(stack, f"summary:{page}"))

        assert rows(stack, OWNERS) == [("page", page)]
        owed = [lease.subject_key for lease in claim_due(stack, WorkKind.SEGMENT)]
        assert owed == [str(create_scope(stack))]

    def test_a_summary_that_changed_meanwhile_is_stale(self, stack: Stack) -> None:
        """The vector of an older summary is never stored beside a newer one."""
        (page,) = _sealed(stack, 13)
        _summarize(stack, page, "First.")
        embedder = WatchingEmbedder(lambda: _summarize(stack, page, "Second."))
        with pytest.raises(StaleReadError):
            embed(_parts(stack, embedder), _claim_embed(stack, f"summary:{page}"))

        assert rows(stack, OWNERS) == []

    def test_an_archived_page_stays_out_of_the_index(self, stack: Stack) -> None:
        """A page archived while its summary is embedded is not put back into ranking."""
        (page,) = _sealed(stack, 13)
        _summarize(stack, page, "Maya talks about numbers.")
        archive = "update memoryos.page set tier = 'archived', extracted_at = now() returning 1"
        embedder = WatchingEmbedder(lambda: rows(stack, archive))
        embed(_parts(stack, embedder), _claim_embed(stack, f"summary:{page}"))

        assert rows(stack, OWNERS) == []


class TestEmbedKnowledge:
    @pytest.mark.parametrize(("status", "expected"), [("active", 1), ("forgotten", 0)])
    def test_only_what_may_be_recalled(self, stack: Stack, status: str, expected: int) -> None:
        """Active knowledge is indexed, forgotten knowledge is not."""
        knowledge, scope = mint_id(), create_scope(stack)
        values = {"tenant_id": stack.tenant_id, "id": knowledge, "scope_id": scope}
        rows(stack, ADD_KNOWLEDGE, **values, content="Mayaは大阪に住んでいる", status=status)
        embed(_parts(stack), _claim_embed(stack, f"knowledge:{knowledge}"))

        assert len(rows(stack, OWNERS)) == expected


class TestConcurrency:
    def test_a_late_run_leaves_nothing(self, stack: Stack) -> None:
        """A run whose lease was taken over while it embedded is fenced and stores no row."""
        (page,) = _sealed(stack, 13)
        subject = f"turns:{page}"
        late = _claim_embed(stack, subject, lease_seconds=0)
        _claim_embed(stack, subject)
        with pytest.raises(FencedError):
            embed(_parts(stack), late)

        assert (rows(stack, OWNERS), rows(stack, INDEXED)) == ([], [(0,)])

    def test_a_scope_erased_while_embedding_ends_quietly(self, stack: Stack) -> None:
        """The work row is gone with the scope: fenced, and no vector of an erased user comes back."""
        (page,) = _sealed(stack, 13)
        embedder = WatchingEmbedder(lambda: rows(stack, "delete from memoryos.scope returning scope_id"))
        with pytest.raises(FencedError):
            embed(_parts(stack, embedder), _claim_embed(stack, f"turns:{page}"))

        assert rows(stack, OWNERS) == []

    def test_pages_indexed_at_once_leave_no_hole(self, stack: Stack) -> None:
        """The first page is saved while the second is not committed yet: the prefix still reaches the second."""
        pages = _sealed(stack, 18)
        lease = _claim_embed(stack, f"turns:{pages[0]}")
        with ThreadPoolExecutor(1) as pool:
            with stack.app.transaction(stack.tenant_id) as connection:
                second = find_page(connection, stack.tenant_id, pages[1])
                assert second is not None
                lock_conversation(connection, stack.tenant_id, second.conversation_id)
                mark_indexed(connection, stack.tenant_id, second)
                first = pool.submit(embed, _parts(stack), lease)
                wait_for_a_waiter(stack)
            first.result(timeout=30)

        assert rows(stack, INDEXED) == [(10,)]

    def test_no_connection_is_held_while_embedding(self, stack: Stack) -> None:
        """While the embedder works, the pool has every connection back."""
        (page,) = _sealed(stack, 13)
        held: list[int] = []
        pool = stack.app.engine.pool
        embedder = WatchingEmbedder(lambda: held.append(pool.checkedout()))  # type: ignore[attr-defined]
        embed(_parts(stack, embedder), _claim_embed(stack, f"turns:{page}"))

        assert held == [0]

    def test_the_number_of_statements_does_not_grow_with_the_turns(self, stack: Stack) -> None:
        """Everything is written by the array: a page of five costs what a page of one costs."""
        _statements_of_embedding(stack, 1, "warm-up")

        assert _statements_of_embedding(stack, 5, "long") == _statements_of_embedding(stack, 1, "short")


def _statements_of_embedding(stack: Stack, turns: int, conversation: str) -> int:
    close(stack, record(stack, *numbered(turns), conversation=conversation))
    advance(_parts(stack), claim_due(stack, WorkKind.ADVANCE)[0])
    (lease,) = claim_due(stack, WorkKind.EMBED)
    return count_statements(stack.app, lambda: embed(_parts(stack), lease))
