"""Made-up memories in bulk, indexed as real ones are: what a measurement of recall fills a database with."""

from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.ids import conversation_id, scope_id
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.search import ScopeKey
from memoryos_pipeline.store.vectors import SpaceOwner, ensure_space

AGENT = "bench"
TERMS_PER_TURN = 20
VOCABULARY = 20_000
"""Words are drawn log-uniformly, so a few are in most turns and most are rare, as in any language."""
START = datetime(2026, 1, 1, tzinfo=UTC)

FILL_SCOPE = text("""
    insert into memoryos.scope (tenant_id, scope_id, user_id, agent_id)
    values (:tenant_id, :scope_id, :user_id, :agent_id)
""")
FILL_CONVERSATION = text("""
    insert into memoryos.conversation (tenant_id, conversation_id, scope_id, external_id, next_seq, sealed_through,
                                       indexed_through)
    values (:tenant_id, :conversation_id, :scope_id, 'made up', :turns + 1, :turns, :turns)
""")
# The inner queries look at seq, or they would be run once and every turn would say the same.
FILL_TURNS = text("""
    insert into memoryos.turn (tenant_id, conversation_id, seq, turn_id, scope_id, client_turn_id, body_sha256, role,
                               speaker, content, lang, occurred_at, utc_offset_minutes)
    select :tenant_id, :conversation_id, seq, gen_random_uuid(), :scope_id, cast(seq as text), decode('00', 'hex'),
           case when seq % 2 = 1 then 'user' else 'assistant' end,
           case when seq % 2 = 1 then 'Mika' else 'Companion' end,
           (select string_agg('w' || cast(floor(exp(random() * ln(:vocabulary))) as integer), ' ')
              from generate_series(1, :terms + 0 * seq)),
           'en', :start + seq * interval '1 minute' + (seq / 50) * interval '1 day', 0
      from generate_series(1, :turns) seq
""")
FILL_POSTINGS = text("""
    insert into memoryos.posting (tenant_id, scope_id, term, owner_kind, owner_id, tf, terms)
    select :tenant_id, :scope_id, term, 'turn', turn_id, count(*), :terms
      from memoryos.turn cross join string_to_table(content, ' ') term
     where tenant_id = :tenant_id and scope_id = :scope_id group by term, turn_id
""")
FILL_LENGTHS = text("""
    insert into memoryos.posting_length (tenant_id, scope_id, owner_kind, owner_id, terms, conversation_id, seq, at,
                                         speaker)
    select :tenant_id, :scope_id, 'turn', turn_id, :terms, conversation_id, seq, occurred_at, speaker
      from memoryos.turn
     where tenant_id = :tenant_id and scope_id = :scope_id
""")
FILL_VECTORS = text("""
    insert into memoryos.embedding (tenant_id, scope_id, space_id, owner_kind, owner_id, vec, input_sha256, tokens)
    select :tenant_id, :scope_id, :space_id, 'turn', turn_id,
           cast((select array_agg(cast(random() - 0.5 as real)) from generate_series(1, :dimensions + 0 * seq))
                as public.halfvec),
           decode('00', 'hex'), :terms
      from memoryos.turn where tenant_id = :tenant_id and scope_id = :scope_id
""")
SETTLE = text("vacuum (analyze) memoryos.turn, memoryos.embedding, memoryos.posting, memoryos.posting_length")


def fill_user(connection: Connection, tenant_id: UUID, user_id: str, *, turns: int, embedder: SpaceOwner) -> None:
    """Give a new user one conversation of sealed and indexed turns, with vectors of the embedder's space at random."""
    scope = scope_id(tenant_id, user_id, AGENT)
    space_id = ensure_space(connection, embedder)
    values = ScopeKey(tenant_id, scope).bind(
        user_id=user_id, agent_id=AGENT, conversation_id=conversation_id(scope, "made up"), turns=turns, start=START,
        terms=TERMS_PER_TURN, vocabulary=VOCABULARY, space_id=space_id, dimensions=embedder.dimensions,
    )  # fmt: skip
    for statement in (FILL_SCOPE, FILL_CONVERSATION, FILL_TURNS, FILL_POSTINGS, FILL_LENGTHS, FILL_VECTORS):
        connection.execute(statement, values)


def settle(owner: Database) -> None:
    """Vacuum and analyze what was filled in, as autovacuum would a minute later. Only the owner role may."""
    with owner.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(SETTLE)
