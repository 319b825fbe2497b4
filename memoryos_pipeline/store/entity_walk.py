"""From the entities a question names to the statements that name them, and one step further."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from memoryos_pipeline.store.search import ScopeKey

LINKED_LIMIT = 200
"""Statements that entities bring at most, the nearest first."""
EDGE_LIMIT = 200
"""Mentions, relations or links of one end that are followed, in each direction."""
PART, STEP = 0.8, 0.5
"""What it counts to be named by a part of the name, and each step along a relation or a link."""

LINKED_LAYOUT = (("owner_id", "S16"), ("strength", ">f8"), ("owners", ">i8"))
"""`owners` is how many statements name the entity that brought this one."""
# A name written with spaces is a run of whole words of the question; one written without is anywhere in it. The
# speakers are left out: they are what the actor is for, and every relation of theirs hangs on them.
# The limits keep the planner from reading a whole table for a join: each entity and statement is looked up by its key.
LINKED = text("""
    with recursive named as (
        select entity_id, case when is_whole then 1.0 else :part end as strength
          from (select entity_id,
                       case when name_norm ~ :unspaced
                            then char_length(name_norm) > 1 and position(name_norm in :question) > 0
                            else position(' ' || name_norm || ' ' in :words) > 0 end as is_whole,
                       case when name_norm ~ :unspaced
                            then char_length(name_norm) > 2 and position(right(name_norm, 2) in :question) > 0
                            else position(' ' in name_norm) > 0 and char_length(split_part(name_norm, ' ', 1)) > 2
                                 and position(' ' || split_part(name_norm, ' ', 1) || ' ' in :words) > 0
                       end as is_part
                  from memoryos.entity
                 where tenant_id = :tenant_id and scope_id = :scope_id and type <> 'speaker') known
         where is_whole or is_part),
    walk as (
        select entity_id, cast(strength as double precision) as strength, 0 as steps from named
        union
        select edge.entity_id, walk.strength * :step, walk.steps + 1
          from walk
         cross join lateral (
               (select target_id as entity_id from memoryos.relation
                 where tenant_id = :tenant_id and source_id = walk.entity_id and valid_to is null limit :edge_limit)
                 union all
               (select source_id from memoryos.relation
                 where tenant_id = :tenant_id and target_id = walk.entity_id and valid_to is null limit :edge_limit)
               ) edge
         cross join lateral (
               select type from memoryos.entity
                where tenant_id = :tenant_id and entity_id = edge.entity_id limit 1) e
         where walk.steps < 1 and e.type <> 'speaker'),
    reached as (select entity_id, max(strength) as strength from walk group by entity_id),
    standing as (
        select reached.entity_id, reached.strength, m.knowledge_id,
               count(*) over (partition by reached.entity_id) as owners
          from reached
         cross join lateral (
               select knowledge_id from memoryos.mention
                where tenant_id = :tenant_id and entity_id = reached.entity_id limit :edge_limit) m
         cross join lateral (
               select status from memoryos.knowledge
                where tenant_id = :tenant_id and knowledge_id = m.knowledge_id limit 1) k
         where k.status = 'active'),
    told as (
        select distinct on (knowledge_id) knowledge_id, strength, owners
          from (select knowledge_id, strength, owners from standing
                 union all
                select l.target_id, s.strength * :step * l.weight, s.owners
                  from standing s
                 cross join lateral (
                       select target_id, weight from memoryos.knowledge_link
                        where tenant_id = :tenant_id and source_id = s.knowledge_id limit :edge_limit) l) every
         order by knowledge_id, strength desc, owners)
    select string_agg(uuid_send(knowledge_id) || float8send(strength) || int8send(owners), '')
      from (select * from told order by strength desc, owners, knowledge_id limit :limit) nearest
""")
UNSPACED = "[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af]"


def read_linked(connection: Connection, key: ScopeKey, *, question: str, words: Sequence[str]) -> bytes:
    """Return records (LINKED_LAYOUT) of the statements that entities named in a question bring.

    `question` and `words` (its words, without marks) are folded as names are.
    """
    values = key.bind(
        question=question, words=f" {' '.join(words)} ", unspaced=UNSPACED, part=PART, step=STEP, limit=LINKED_LIMIT,
        edge_limit=EDGE_LIMIT,
    )  # fmt: skip
    return connection.execute(LINKED, values).scalar() or b""
