"""Hot queries use an index under the app role, where row level security switches many of them off."""

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import TextClause, text

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.store import heat, search, segments, vectors
from tests.builders import rows
from tests.conftest import Stack

SCOPES = """
    insert into memoryos.scope (tenant_id, scope_id, user_id, agent_id)
    select :tenant_id, gen_random_uuid(), 'user' || n, 'companion' from generate_series(1, 20) n returning scope_id
"""
VECTORS = """
    insert into memoryos.embedding (tenant_id, space_id, owner_kind, owner_id, scope_id, vec, input_sha256, tokens)
    select :tenant_id, :space, 'turn', gen_random_uuid(), s.scope_id,
           array_fill(n::real / 1000, array[384])::halfvec, '', 1
      from memoryos.scope s, generate_series(1, 1000) n returning 1
"""
POSTINGS = """
    insert into memoryos.posting (tenant_id, scope_id, term, owner_kind, owner_id, tf, terms)
    select tenant_id, scope_id, term, owner_kind, owner_id, 1, 2
      from memoryos.embedding, (values ('maya'), ('tennis')) terms(term) returning 1
"""
LENGTHS = """
    insert into memoryos.posting_length (tenant_id, scope_id, owner_kind, owner_id, terms)
    select tenant_id, scope_id, owner_kind, owner_id, 2 from memoryos.embedding returning 1
"""
CONVERSATIONS = """
    insert into memoryos.conversation (tenant_id, conversation_id, scope_id, external_id, next_seq)
    select tenant_id, gen_random_uuid(), scope_id, 'c1', 5001 from memoryos.scope returning 1
"""
PAGES = """
    insert into memoryos.page (tenant_id, page_id, scope_id, conversation_id, first_seq, last_seq, first_turn_at,
                               last_turn_at, lang, extract_ordinal, assigned_at, summarized_at)
    select tenant_id, gen_random_uuid(), scope_id, conversation_id, n * 5 + 1, n * 5 + 5, now(), now(), 'en',
           case when n < 995 then n end, case when n < 995 then now() end, now()
      from memoryos.conversation, generate_series(0, 999) n returning 1
"""
SEGMENTS = """
    insert into memoryos.segment (tenant_id, segment_id, scope_id, theme, summary)
    select tenant_id, scope_id, scope_id, '', '' from memoryos.scope returning 1
"""
LINKS = """
    insert into memoryos.page_segment (tenant_id, page_id, segment_id)
    select tenant_id, page_id, scope_id from memoryos.page where assigned_at is not null returning 1
"""
ACCESSES = """
    insert into memoryos.access_event (tenant_id, retrieval_id, owner_kind, owner_id, scope_id, cause, applied_at)
    select tenant_id, gen_random_uuid(), 'page', page_id, scope_id, 'injected', now() from memoryos.page returning 1
"""


@pytest.fixture
def scope(stack: Stack) -> UUID:
    """One of twenty scopes that have a thousand vectors, postings, pages and accesses each."""
    key = {"tenant_id": stack.tenant_id}
    scopes = rows(stack, SCOPES, **key)
    with stack.app.transaction(stack.tenant_id) as connection:
        space = vectors.ensure_space(connection, HashingEmbedder())
    rows(stack, VECTORS, **key, space=space)
    for statement in (POSTINGS, LENGTHS, CONVERSATIONS, PAGES, SEGMENTS, LINKS, ACCESSES):
        rows(stack, statement)
    with stack.owner.across_tenants() as connection:
        connection.execute(text("analyze"))
    return scopes[0][0]  # type: ignore[no-any-return]


def _nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for child in plan.get("Plans", ()) for node in _nodes(child))]


def _scans(stack: Stack, statement: TextClause, **values: Any) -> dict[str, set[str]]:
    """Return, per table a statement reads, the indexes it reads it by."""
    with stack.app.transaction(stack.tenant_id) as connection:
        explain = text(f"explain (format json) {statement.text}")
        (plan,) = connection.execute(explain, {"tenant_id": stack.tenant_id, **values}).scalar_one()
    scans: dict[str, set[str]] = {}
    for node in _nodes(plan["Plan"]):
        names = {each["Index Name"] for each in _nodes(node) if "Index Name" in each}
        if "Relation Name" in node:
            scans.setdefault(node["Relation Name"], set()).update(names or {"sequential scan"})
    return scans


class TestPlans:
    def test_searches_read_one_scope_by_an_index(self, stack: Stack, scope: UUID) -> None:
        """Nearest vectors and postings of a term are found without reading other scopes' rows."""
        owners = {"owner_kinds": ["turn", "page", "knowledge"], "scope_id": scope}
        vector = vectors.vector_text([0.1] * 384)
        nearest = _scans(stack, vectors.nearest_query(384), **owners, space_id=1, vector=vector, limit=50)
        found = _scans(stack, search.POSTINGS, scope_id=scope, kinds=owners["owner_kinds"], terms=["tennis", "court"])

        assert nearest["embedding"] == {"embedding_by_scope"}
        assert found["posting"] == {"posting_pkey"}

    @pytest.mark.usefixtures("scope")
    def test_an_owner_is_taken_out_of_search_by_an_index(self, stack: Stack) -> None:
        """Removing index rows never reads a tenant's whole index."""
        owners = {"owner_kind": "turn", "owner_ids": [mint_id()]}

        assert _scans(stack, vectors.REMOVE_VECTORS, **owners)["embedding"] == {"embedding_pkey"}
        assert _scans(stack, vectors.REMOVE_POSTINGS, **owners)["posting"] == {"posting_by_owner"}
        assert _scans(stack, vectors.REMOVE_LENGTHS, **owners)["posting_length"] == {"posting_length_by_owner"}

    def test_work_reads_only_what_is_due(self, stack: Stack, scope: UUID) -> None:
        """Pages without a segment, cold pages and waiting accesses are found among thousands that are done."""
        key = {"scope_id": scope, "space_id": 1, "limit": 100}
        unassigned = _scans(stack, segments.LOAD_UNASSIGNED, **key)
        waiting = _scans(stack, segments.LOAD_WAITING, scope_id=scope)
        cold = _scans(stack, heat.LOAD_COLD, scope_id=scope, limit=100)
        accesses = _scans(stack, heat.LOAD_ACCESSES, scope_id=scope, limit=100)

        assert unassigned["page"] == {"page_not_handed"}
        assert waiting["page"] == {"page_not_handed"}
        assert cold["page"] == {"page_cools_at"}
        assert accesses["access_event"] == {"access_event_waiting"}
