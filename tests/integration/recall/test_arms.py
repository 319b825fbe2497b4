"""The arms of recall equal what they stand for, and their statements stay on indexes."""

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import bm25s
import numpy as np
import pytest
from sqlalchemy import Connection, text

from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.models.lexical import lexical_terms, query_terms
from memoryos_pipeline.recall import gather as gathering
from memoryos_pipeline.recall.columns import uuid_at
from memoryos_pipeline.recall.search import search
from memoryos_pipeline.store import entity_walk, found, matching
from memoryos_pipeline.store import search as statements
from memoryos_pipeline.store.vectors import nearest_query, vector_text
from tests.builders_recall import START, FailingEmbedder, ask, recall_parts, remember
from tests.conftest import Stack

WORDS = (
    "harbour", "violin", "curtain", "lemon", "market", "train", "soup", "mountain", "letter", "garden", "window",
    "river", "ticket", "piano", "dentist",
)  # fmt: skip


def some_turns(count: int) -> list[tuple[str, str]]:
    """Turns of a few words each, the same ones every time."""
    chance = random.Random(7)
    return [
        ("Maya" if n % 2 else "Companion", " ".join(chance.choices(WORDS, k=chance.randint(2, 9))))
        for n in range(count)
    ]


def reference_bm25(documents: Sequence[Sequence[str]], query: Sequence[str]) -> list[float]:
    """BM25 by a reference library, which leaves out the constant factor k1 + 1."""
    index = bm25s.BM25(k1=1.2, b=0.3, method="lucene")
    index.index([list(document) for document in documents], show_progress=False)
    scores: list[float] = (2.2 * index.get_scores(list(query))).tolist()
    return scores


class TestLexical:
    def test_it_is_bm25(self, stack: Stack) -> None:
        """The score of every turn, and of every window of turns, equals a reference computed from the texts."""
        turns = some_turns(60)
        remember(stack, *turns)
        question = "a violin, a dentist and lemon soup"
        found = search(recall_parts(stack, embedder=FailingEmbedder()), stack.tenant_id, ask(question, limit=100))
        terms = [lexical_terms(content, "en") for _, content in turns]
        expected = reference_bm25(terms, query_terms(question, "en"))
        got = {result.source_turns[0].seq: result.features["bm25"] for result in found.results}

        assert len(got) == 60
        assert [got[n + 1] for n in range(60)] == pytest.approx(expected, rel=1e-5)

    def test_common_terms_only_score(self, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
        """Over the posting budget the rare term finds, and the common one still counts in its exact score."""
        monkeypatch.setattr(gathering, "WHOLE_SCOPE", 0)
        monkeypatch.setattr(gathering, "POSTING_BUDGET", 5)
        monkeypatch.setattr(gathering, "ALL_TIME", (gathering.ALL_TIME[0], gathering.ALL_TIME[0]))
        turns = [("Maya", f"soup {word}") for word in WORDS * 4] + [("Maya", "soup with saffron")]
        remember(stack, *turns)
        found = search(recall_parts(stack, embedder=FailingEmbedder()), stack.tenant_id, ask("saffron soup", limit=100))
        terms = [lexical_terms(content, "en") for _, content in turns]
        expected = reference_bm25(terms, query_terms("saffron soup", "en"))

        assert len(found.results) < 5
        assert found.results[0].content == "soup with saffron"
        assert found.results[0].features["bm25"] == pytest.approx(expected[-1], rel=1e-5)


class TestDense:
    def test_it_equals_brute_force(self, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
        """The nearest by the database are the nearest by numpy, in a scope beside a much larger one."""
        monkeypatch.setattr(gathering, "DENSE_LIMIT", 20)
        remember(stack, *some_turns(900), user_id="other")
        turns = some_turns(80)
        ids = remember(stack, *turns)
        embedder = HashingEmbedder()
        question = "who plays violin by the river"
        found = search(recall_parts(stack), stack.tenant_id, ask(question))
        matrix = np.stack([each.vector for each in embedder.embed_passages([content for _, content in turns])])
        cosines = matrix.astype(np.float16).astype(np.float32) @ embedder.embed_query(question)
        best = sorted(cosines, reverse=True)[:20]
        dense = found.evidence.dense
        got = {uuid_at(dense.owners, place): cosine for place, cosine in enumerate(dense.cosines)}

        assert sorted(got.values(), reverse=True) == pytest.approx(best, abs=2e-3)
        assert all(got[owner] == pytest.approx(cosines[ids.index(owner)], abs=2e-3) for owner in got)


FILL = """
    insert into memoryos.scope (tenant_id, scope_id, user_id, agent_id)
    select :tenant_id, md5('scope' || u)::uuid, 'user' || u, 'companion' from generate_series(1, 40) u;
    insert into memoryos.conversation (tenant_id, conversation_id, scope_id, external_id, next_seq, sealed_through,
                                       indexed_through)
    select :tenant_id, md5('conversation' || u)::uuid, md5('scope' || u)::uuid, 'c', 501, 490, 490
      from generate_series(1, 40) u;
    insert into memoryos.turn (tenant_id, conversation_id, seq, turn_id, scope_id, client_turn_id, body_sha256, role,
                               speaker, content, lang, occurred_at, utc_offset_minutes)
    select :tenant_id, md5('conversation' || u)::uuid, n, md5(u || 'turn' || n)::uuid, md5('scope' || u)::uuid, n, 'x',
           'user', 'Maya', 'text', 'en', timestamptz '2026-01-01' + n * interval '1 hour', 0
      from generate_series(1, 40) u, generate_series(1, 500) n;
    insert into memoryos.posting (tenant_id, scope_id, term, owner_kind, owner_id, tf, terms)
    select :tenant_id, md5('scope' || u)::uuid, 'term' || (n % 50), 'turn', md5(u || 'turn' || n)::uuid, 1, 1
      from generate_series(1, 40) u, generate_series(1, 490) n;
    insert into memoryos.posting_length (tenant_id, scope_id, owner_kind, owner_id, terms, conversation_id, seq, at,
                                         speaker)
    select :tenant_id, md5('scope' || u)::uuid, 'turn', md5(u || 'turn' || n)::uuid, 1,
           md5('conversation' || u)::uuid, n, timestamptz '2026-01-01' + n * interval '1 hour', 'Maya'
      from generate_series(1, 40) u, generate_series(1, 490) n;
    insert into memoryos.vector_space (model, revision, dimensions, token_cap) values ('m', 'r', 8, 8);
    insert into memoryos.embedding (tenant_id, space_id, owner_kind, owner_id, scope_id, vec, input_sha256, tokens)
    select :tenant_id, s.space_id, 'turn', md5(u || 'turn' || n)::uuid, md5('scope' || u)::uuid,
           array[u, n, 1, 1, 1, 1, 1, 1]::public.vector::public.halfvec, 'x', 1
      from memoryos.vector_space s, generate_series(1, 40) u, generate_series(1, 490) n;
    insert into memoryos.knowledge (tenant_id, knowledge_id, scope_id, lineage_id, kind, content, content_sha256, lang,
                                    actor, importance, strength_days, turn_at, valid_from, extracted_by)
    select :tenant_id, md5(u || 'known' || n)::uuid, md5('scope' || u)::uuid, md5(u || 'known' || n)::uuid, 'fact',
           'text', int4send(n), 'en', 'Maya', 0.5, 50, timestamptz '2026-01-01', timestamptz '2026-01-01', 'x'
      from generate_series(1, 40) u, generate_series(1, 100) n;
    insert into memoryos.entity (tenant_id, entity_id, scope_id, name, name_norm, type)
    select :tenant_id, md5(u || 'entity' || n)::uuid, md5('scope' || u)::uuid, 'e' || n, 'e' || n, 'thing'
      from generate_series(1, 40) u, generate_series(1, 100) n;
    insert into memoryos.relation (tenant_id, relation_id, scope_id, source_id, name, target_id, knowledge_id,
                                   valid_from)
    select :tenant_id, md5(u || 'relation' || n)::uuid, md5('scope' || u)::uuid, md5(u || 'entity' || n)::uuid, 'has',
           md5(u || 'entity' || n % 100 + 1)::uuid, md5(u || 'known' || n)::uuid, timestamptz '2026-01-01'
      from generate_series(1, 40) u, generate_series(1, 100) n;
    insert into memoryos.mention (tenant_id, knowledge_id, entity_id)
    select :tenant_id, md5(u || 'known' || n)::uuid, md5(u || 'entity' || n)::uuid
      from generate_series(1, 40) u, generate_series(1, 100) n;
    insert into memoryos.knowledge_link (tenant_id, scope_id, source_id, target_id, type, weight, reason, created_by)
    select :tenant_id, md5('scope' || u)::uuid, md5(u || 'known' || n)::uuid, md5(u || 'known' || n % 100 + 1)::uuid,
           'similar', 0.5, 'x', 'x'
      from generate_series(1, 40) u, generate_series(1, 100) n
"""
LARGE = {
    "turn",
    "posting",
    "posting_length",
    "embedding",
    "entity",
    "relation",
    "mention",
    "knowledge_link",
    "knowledge",
}


def plan_nodes(connection: Connection, statement: Any, values: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes of a statement's plan, as the app role gets it."""
    explained = connection.execute(text("explain (format json) " + str(statement)), values).scalar_one()
    waiting, nodes = [explained[0]["Plan"]], []
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        waiting += node.get("Plans", [])
    return nodes


class TestPlans:
    def test_no_statement_scans_a_table(self, stack: Stack) -> None:
        """With 20,000 turns of 40 users, every statement of a search is served by indexes under row level security."""
        tenant_id = stack.tenant_id
        with stack.app.transaction(tenant_id) as connection:
            for statement in FILL.split(";"):
                connection.execute(text(statement.replace("::", "\\:\\:")), {"tenant_id": tenant_id})
        with stack.owner.transaction(tenant_id) as connection:
            connection.execute(text("analyze"))
            scope, turn = connection.execute(
                text("select scope_id, turn_id from memoryos.turn where seq = 20 limit 1")
            ).one()
            space = connection.execute(text("select space_id from memoryos.vector_space")).scalar_one()
        with stack.app.snapshot(tenant_id) as connection:
            for name, statement, values in _asked(tenant_id, scope, turn, space):
                scanned = [
                    node["Relation Name"]
                    for node in plan_nodes(connection, statement, values)
                    if node["Node Type"] == "Seq Scan" and node.get("Relation Name") in LARGE
                ]
                assert scanned == [], name


def _asked(tenant_id: UUID, scope: UUID, turn: UUID, space: int) -> list[tuple[str, Any, dict[str, Any]]]:
    key = statements.ScopeKey(tenant_id, scope)
    kinds, terms = ["turn", "page", "knowledge"], ["term1", "term2", "absent"]
    span = gathering.ALL_TIME[0]
    owner = {"model": "m", "revision": "r", "dimensions": 8, "token_cap": 8}
    vector = vector_text([1.0] * 8)
    passing = {
        "kinds": kinds, "since": START, "until": START + timedelta(days=2), "conversation_id": None,
        "speakers": ["Maya"], "include_history": False,
    }  # fmt: skip
    return [
        ("frame", statements.FRAME, key.bind(speaker_limit=64, **owner)),
        ("nearest", nearest_query(8), key.bind(space_id=space, owner_kinds=kinds, vector=vector, limit=100)),
        ("statistics", statements.STATISTICS, key.bind(kinds=kinds, terms=terms, count_limit=1000)),
        ("postings", statements.POSTINGS, key.bind(kinds=kinds, terms=terms)),
        (
            "postings of",
            statements.POSTINGS_OF,
            key.bind(kinds=kinds, terms=terms, owner_ids=[turn] * 50, owner_kinds=["turn"] * 50),
        ),
        (
            "turns",
            statements.TURNS,
            key.bind(
                turn_ids=[turn] * 50, tail_limit=500, starts=[span], ends=[span], dated_limit=100, actor_names=["Maya"]
            ),
        ),
        ("whole scope", statements.WHOLE_SCOPE, key.bind(tail_limit=500, actor_names=["Maya"])),
        (
            "others",
            statements.OTHERS,
            key.bind(knowledge_ids=[turn], page_ids=[turn], include_history=True, with_texts=True),
        ),
        ("matching", matching.MATCHING, key.bind(**passing, tiers=None)),
        ("matching in tiers", matching.MATCHING_IN_TIERS, key.bind(**passing, tiers=["hot", "warm"])),
        (
            "linked",
            entity_walk.LINKED,
            key.bind(question="e1", words=" e1 ", unspaced="x", part=0.8, step=0.5, limit=9, edge_limit=200),
        ),
        ("turns at", found.TURNS_AT, key.bind(conversation_ids=[turn], seqs=[1])),
        ("hot turns", found.HOT_TURNS, key.bind(external_id=None, limit=100)),
    ]
