"""Builders of memories that are ready to be searched: indexed turns, knowledge that cites them, pages."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import text

from memoryos_pipeline.domain.errors import ModelError
from memoryos_pipeline.domain.ids import conversation_id, derive_id, scope_id, turn_id
from memoryos_pipeline.domain.language import detect_language
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.domain.turn_marks import read_marks
from memoryos_pipeline.domain.turns import NewTurn
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.models.lexical import lexical_terms
from memoryos_pipeline.models.protocols import Embedded, Journal, Vector
from memoryos_pipeline.recall.search import Ask
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.stages.record_turns import record_turns
from memoryos_pipeline.store.postings import put_postings
from memoryos_pipeline.store.vectors import ensure_space, put_vectors
from tests.conftest import Stack

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
INDEXED = text("""
    update memoryos.conversation set sealed_through = next_seq - 1, indexed_through = next_seq - 1
     where tenant_id = :tenant_id and conversation_id = :conversation_id
""")
PAGE = text("""
    insert into memoryos.page (tenant_id, page_id, scope_id, conversation_id, first_seq, last_seq, first_turn_at,
                               last_turn_at, lang, summary)
    values (:tenant_id, :page_id, :scope_id, :conversation_id, :first, :last, :at, :at, 'en', :summary)
    on conflict do nothing
""")
KNOWLEDGE = text("""
    insert into memoryos.knowledge (tenant_id, knowledge_id, scope_id, lineage_id, version, kind, content,
        content_sha256, lang, actor, importance, strength_days, event_at, turn_at, valid_from, status, superseded_by,
        retired_at, extracted_by)
    values (:tenant_id, :knowledge_id, :scope_id, :lineage_id, :version, 'fact', :content, :sha, 'en', :actor, 0.5, 50,
        :event_at, :at, :at, :status, :superseded_by, :retired_at, 'test')
""")
SOURCE = text("""
    insert into memoryos.knowledge_source (tenant_id, knowledge_id, conversation_id, seq, page_id)
    values (:tenant_id, :knowledge_id, :conversation_id, :seq, :page_id)
""")


@dataclass
class TalkingModel:
    """A language model that answers with a fixed text, or cannot; it remembers what it was shown."""

    reply: str | None = None
    shown: list[tuple[str, str]] = field(default_factory=list)
    name: str = "talking"

    def answer(self, question: str, context: str, *, journal: Journal) -> str | None:
        self.shown.append((question, context))
        return self.reply


class FailingEmbedder(HashingEmbedder):
    """An embedder whose service is away."""

    def embed_query(self, text: str) -> Vector:
        raise ModelError


def recall_parts(stack: Stack, *, embedder: Any = None, language_model: Any = None) -> Parts:
    """Parts with the hashing embedder and a model that cannot talk, unless told otherwise."""
    return Parts(stack.app, embedder or HashingEmbedder(), language_model or TalkingModel())


def ask(query: str, **options: Any) -> Ask:
    """A question to Maya's memory."""
    return Ask(options.pop("user_id", "maya"), options.pop("agent_id", "companion"), query, **options)


def say(stack: Stack, *lines: tuple[str, str], conversation: str = "c1", **options: Any) -> list[UUID]:
    """Record (speaker, content) a minute apart, unindexed; the speaker called Companion is the assistant."""
    user_id, start = options.get("user_id", "maya"), options.get("start", START)
    first, tenant_id = options.get("first", 1), options.get("tenant_id", stack.tenant_id)
    turns = [
        NewTurn(
            user_id, "companion", conversation, f"t{first + n}",
            "assistant" if speaker == "Companion" else "user",
            speaker, content, start + timedelta(minutes=n),
        )
        for n, (speaker, content) in enumerate(lines)
    ]  # fmt: skip
    receipts = record_turns(stack.app, tenant_id, turns, policy=DEFAULT, max_attempts=5)
    return [UUID(receipt.turn_id) for receipt in receipts]


def remember(stack: Stack, *lines: tuple[str, str], conversation: str = "c1", **options: Any) -> list[UUID]:
    """Record turns as `say` does and index them, as the workers would."""
    ids = say(stack, *lines, conversation=conversation, **options)
    tenant_id = options.get("tenant_id", stack.tenant_id)
    scope = scope_id(tenant_id, options.get("user_id", "maya"), "companion")
    texts = [content for _, content in lines]
    index(stack, "turn", list(zip(ids, texts, strict=True)), scope=scope, tenant_id=tenant_id)
    with stack.app.transaction(tenant_id) as connection:
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id(scope, conversation)}
        connection.execute(INDEXED, values)
    return ids


def index(
    stack: Stack, kind: str, texts: Sequence[tuple[UUID, str]], *, scope: UUID, tenant_id: UUID | None = None
) -> None:
    """Write vectors and postings of texts."""
    tenant_id = tenant_id or stack.tenant_id
    embedder = HashingEmbedder()
    embedded: list[Embedded] = embedder.embed_passages([content for _, content in texts])
    vectors = [(owner, vector, b"sha") for (owner, _), vector in zip(texts, embedded, strict=True)]
    terms = [(owner, lexical_terms(content, detect_language(content))) for owner, content in texts]
    with stack.app.transaction(tenant_id) as connection:
        put_vectors(connection, tenant_id, scope, ensure_space(connection, embedder), kind, vectors)
        marks = {owner: read_marks(content) for owner, content in texts}
        put_postings(connection, tenant_id, scope, kind, terms, marks=marks)


def summarize(stack: Stack, summary: str, *, first: int = 1, last: int = 1, conversation: str = "c1") -> UUID:
    """Insert and index a page over turns first..last of Maya's conversation."""
    scope = scope_id(stack.tenant_id, "maya", "companion")
    page = derive_id("page", scope, conversation, first)
    values = {
        "tenant_id": stack.tenant_id, "page_id": page, "scope_id": scope, "first": first, "last": last,
        "conversation_id": conversation_id(scope, conversation), "at": START, "summary": summary,
    }  # fmt: skip
    with stack.app.transaction(stack.tenant_id) as connection:
        connection.execute(PAGE, values)
    index(stack, "page", [(page, summary)], scope=scope)
    return page


def know(stack: Stack, content: str, *, seq: int, **options: Any) -> UUID:
    """Insert and index knowledge that cites one turn of Maya's conversation c1."""
    scope = scope_id(stack.tenant_id, "maya", "companion")
    page = summarize(stack, "a page of its own", first=seq, last=seq)
    superseded_by, version = options.get("superseded_by"), options.get("version", 1)
    knowledge = derive_id("knowledge", scope, content)
    values = {
        "tenant_id": stack.tenant_id, "knowledge_id": knowledge, "scope_id": scope, "version": version,
        "lineage_id": options.get("lineage_id", knowledge), "content": content, "actor": options.get("actor", "Maya"),
        "sha": hashlib.sha256(content.encode()).digest(), "event_at": options.get("event_at"), "at": START,
        "status": "superseded" if superseded_by else "active", "superseded_by": superseded_by,
        "retired_at": START if superseded_by else None, "seq": seq, "page_id": page,
        "conversation_id": conversation_id(scope, "c1"),
    }  # fmt: skip
    with stack.app.transaction(stack.tenant_id) as connection:
        connection.execute(KNOWLEDGE, values)
        connection.execute(SOURCE, values)
    if not superseded_by:
        index(stack, "knowledge", [(knowledge, content)], scope=scope)
    return knowledge


def id_of(stack: Stack, name: str, *, conversation: str = "c1") -> UUID:
    """The id of Maya's turn that was called `name`."""
    return turn_id(conversation_id(scope_id(stack.tenant_id, "maya", "companion"), conversation), name)
