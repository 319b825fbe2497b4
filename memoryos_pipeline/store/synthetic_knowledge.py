"""Made-up knowledge in bulk, some of it due: what a measurement of sweeps fills a database with."""

from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.ids import conversation_id, page_id, scope_id

AGENT = "bench"
TERMS_PER_ROW = 12

PATIENTLY = text("select set_config('statement_timeout', '0', true)")
FILL_SCOPE = text("""
    insert into memoryos.scope (tenant_id, scope_id, user_id, agent_id)
    values (:tenant_id, :scope_id, :user_id, :agent_id)
""")
# Nothing is due before a hundred days have passed.
FILL_KNOWLEDGE = text("""
    insert into memoryos.knowledge (tenant_id, knowledge_id, scope_id, lineage_id, kind, content, content_sha256, lang,
                                    actor, importance, strength_days, forget_at, turn_at, valid_from, extracted_by)
    select :tenant_id, made.id, :scope_id, made.id, 'fact', 'Mika said something of no weight, number ' || made.n,
           sha256(int8send(made.n)), 'en', 'Mika', 0.5, 50, memoryos.now() + interval '100 days' * (1 + random()),
           memoryos.now(), memoryos.now(), 'made up'
      from (select n, gen_random_uuid() as id from generate_series(1, :rows) n) made
""")
FILL_CONVERSATION = text("""
    insert into memoryos.conversation (tenant_id, conversation_id, scope_id, external_id, next_seq, sealed_through,
                                       indexed_through)
    values (:tenant_id, :conversation_id, :scope_id, 'made up', :rows + 1, :rows, :rows)
""")
FILL_PAGE = text("""
    insert into memoryos.page (tenant_id, page_id, scope_id, conversation_id, first_seq, last_seq, first_turn_at,
                               last_turn_at, lang, tier, extracted_at, archived_at)
    values (:tenant_id, :page_id, :scope_id, :conversation_id, 1, :rows, memoryos.now(), memoryos.now(), 'en',
            'archived', memoryos.now(), memoryos.now())
""")
FILL_TURNS = text("""
    insert into memoryos.turn (tenant_id, conversation_id, seq, turn_id, scope_id, client_turn_id, body_sha256, role,
                               speaker, content, lang, occurred_at, utc_offset_minutes)
    select :tenant_id, :conversation_id, n, gen_random_uuid(), :scope_id, cast(n as text), decode('00', 'hex'), 'user',
           'Mika', 'something of no weight', 'en', memoryos.now(), 0 from generate_series(1, :rows) n
""")
CITE = text("""
    insert into memoryos.knowledge_source (tenant_id, knowledge_id, conversation_id, seq, page_id)
    select :tenant_id, knowledge_id, :conversation_id, row_number() over (order by knowledge_id), :page_id
      from memoryos.knowledge where tenant_id = :tenant_id and scope_id = :scope_id
     order by knowledge_id limit :rows
""")
INDEX = text("""
    insert into memoryos.posting (tenant_id, scope_id, term, owner_kind, owner_id, tf, terms)
    select :tenant_id, :scope_id, 'w' || n, 'knowledge', s.knowledge_id, 1, :terms
      from memoryos.knowledge_source s cross join generate_series(1, :terms) n
     where s.tenant_id = :tenant_id and s.conversation_id = :conversation_id
""")
MAKE_DUE = text("""
    update memoryos.knowledge k set forget_at = memoryos.now() - interval '1 hour'
      from memoryos.knowledge_source s
     where s.tenant_id = :tenant_id and s.conversation_id = :conversation_id
       and k.tenant_id = s.tenant_id and k.knowledge_id = s.knowledge_id
""")
ANALYZE = text("analyze memoryos.knowledge, memoryos.knowledge_source, memoryos.posting, memoryos.turn, memoryos.page")
COUNT_EVENTS = text("select count(*) from memoryos.event where tenant_id = :tenant_id and kind = 'knowledge_forgotten'")
FIND_OWED = text("select work_id from memoryos.work where kind = 'forget' and state = 'ready' order by work_id")


def fill_knowledge(connection: Connection, tenant_id: UUID, user_id: str, *, rows: int) -> None:
    """Fill the memory of a user with live statements, none of them due."""
    scope = scope_id(tenant_id, user_id, AGENT)
    values = {"tenant_id": tenant_id, "scope_id": scope, "user_id": user_id, "agent_id": AGENT, "rows": rows}
    connection.execute(PATIENTLY)
    connection.execute(FILL_SCOPE, values)
    connection.execute(FILL_KNOWLEDGE, values)


def make_due(connection: Connection, tenant_id: UUID, user_id: str, *, rows: int) -> None:
    """Let some statements of a user be due, each citing a turn and found by its words."""
    scope = scope_id(tenant_id, user_id, AGENT)
    conversation = conversation_id(scope, "made up")
    values = {
        "tenant_id": tenant_id,
        "scope_id": scope,
        "conversation_id": conversation,
        "page_id": page_id(conversation, 1),
        "rows": rows,
        "terms": TERMS_PER_ROW,
    }
    for statement in (PATIENTLY, FILL_CONVERSATION, FILL_PAGE, FILL_TURNS, CITE, INDEX, MAKE_DUE):
        connection.execute(statement, values)


def analyze(owner: Connection) -> None:
    """Tell the planner how many rows there are."""
    owner.execute(ANALYZE)


def count_forgotten_events(connection: Connection, tenant_id: UUID) -> int:
    """Return how many statements the event log says were forgotten."""
    return int(connection.execute(COUNT_EVENTS, {"tenant_id": tenant_id}).scalar_one())


def find_owed_sweeps(ledger: Connection) -> list[int]:
    """Return the work a sweep for what is due has owed."""
    return list(ledger.execute(FIND_OWED).scalars())
