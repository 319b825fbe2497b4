"""One work row told whole: where it stands, what it waits for in words, what is in line before it, why it died."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from memoryos_pipeline.domain.errors import NotFoundError
from memoryos_pipeline.domain.waiting import Standing, queue_of, waits_for
from memoryos_pipeline.domain.work import QUEUE_OF_KIND
from memoryos_pipeline.store.watermarks import read_sightings

WORK = text("""
    select w.work_id, s.user_id, s.agent_id, w.scope_id, w.kind, w.subject_key, w.state, w.generation, w.fence,
           w.attempts, w.max_attempts, w.executions, w.deferrals, w.run_after, w.enqueued_at, w.lease_until, w.owner,
           w.last_error_class, w.last_error, w.task_id, w.claimed_at, w.deferred_since, w.created_at, w.finished_at
      from memoryos.work w
      join memoryos.scope s on s.tenant_id = w.tenant_id and s.scope_id = w.scope_id
     where w.tenant_id = :tenant_id and w.work_id = :work_id
""")
LETTERS = text("""
    select fence, at, error_class, error, replayed_at from memoryos.dead_letter
     where tenant_id = :tenant_id and work_id = :work_id order by fence
""")
# Segments take pages in this order and merging by ordinal; what was given up is passed over by both.
SEGMENT_LINE = text("""
    select p.page_id, c.external_id, p.first_seq, p.last_seq,
           case when p.summarized_at is null then 'summary' else 'vector of its summary' end as what,
           coalesce(b.work_id, 0) as work_id, coalesce(b.state, 'missing') as state
      from memoryos.page p
      join memoryos.conversation c on c.tenant_id = p.tenant_id and c.conversation_id = p.conversation_id
      left join memoryos.work b on b.tenant_id = p.tenant_id
       and b.kind = case when p.summarized_at is null then 'summarize' else 'embed' end
       and b.subject_key = case when p.summarized_at is null then '' else 'summary:' end || cast(p.page_id as text)
     where p.tenant_id = :tenant_id and p.scope_id = :scope_id and p.assigned_at is null and p.extract_ordinal is null
     order by c.created_at, c.conversation_id, p.first_seq limit :limit
""")
MERGE_LINE = text("""
    select p.page_id, c.external_id, p.first_seq, p.last_seq, 'distillation' as what,
           coalesce(b.work_id, 0) as work_id,
           case when p.extracted_at is not null then 'done' else coalesce(b.state, 'missing') end as state
      from memoryos.scope s
      join memoryos.page p on p.tenant_id = s.tenant_id and p.scope_id = s.scope_id
                          and p.extract_ordinal > s.merged_ordinal
      join memoryos.conversation c on c.tenant_id = p.tenant_id and c.conversation_id = p.conversation_id
      left join memoryos.work b on b.tenant_id = p.tenant_id and b.kind = 'distill'
                               and b.subject_key = cast(p.page_id as text)
     where s.tenant_id = :tenant_id and s.scope_id = :scope_id order by p.extract_ordinal limit :limit
""")
LINES = {"segment": SEGMENT_LINE, "merge": MERGE_LINE}
PAGES_SHOWN = 20
GIVEN_UP = ("dead", "cancelled")


@dataclass(frozen=True, slots=True)
class WorkStory:
    """A row as it stands, with its words: `row` has every column of the ledger, times aware."""

    row: dict[str, Any]
    queue: str
    waits_for: str
    in_line: tuple[str, ...]
    letters: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values, times as ISO 8601."""
        row = {name: _plain(value) for name, value in self.row.items() if name != "scope_id"}
        letters = [{name: _plain(value) for name, value in letter.items()} for letter in self.letters]
        told = {"queue": self.queue, "task": f"memoryos.{self.queue}", "waits_for": self.waits_for}
        return {**row, **told, "in_line": list(self.in_line), "dead_letters": letters}


def tell_work(connection: Connection, tenant_id: UUID, work_id: int) -> WorkStory:
    """Return the story of one work row of a tenant. Raises NotFoundError."""
    key = {"tenant_id": tenant_id, "work_id": work_id}
    row = connection.execute(WORK, key).first()
    if row is None:
        raise NotFoundError(f"there is no work {work_id}")
    queue = queue_of(row.kind)
    siblings = [str(kind) for kind, served_by in QUEUE_OF_KIND.items() if served_by == queue] or [row.kind]
    seen = read_sightings(connection, tenant_id, kinds=siblings)
    letters = tuple(dict(letter) for letter in connection.execute(LETTERS, key).mappings())
    in_line = tuple(_in_line(connection, tenant_id, row))
    return WorkStory(dict(row._mapping), queue, waits_for(_standing(row), seen), in_line, letters)


def _standing(row: Row[Any]) -> Standing:
    return Standing(
        row.work_id, row.kind, row.state, row.attempts, row.max_attempts, row.run_after,
        row.lease_until, row.owner, row.enqueued_at, row.last_error_class,
    )  # fmt: skip


def _in_line(connection: Connection, tenant_id: UUID, row: Row[Any]) -> list[str]:
    """Return which pages the work passes over and the first that it is blocked behind; others wait for nobody."""
    if row.kind not in LINES:
        return []
    values = {"tenant_id": tenant_id, "scope_id": row.scope_id, "limit": PAGES_SHOWN}
    told = []
    for page in connection.execute(LINES[row.kind], values):
        whose = f"page {page.page_id} (turns {page.first_seq} to {page.last_seq} of {page.external_id})"
        if page.state in GIVEN_UP:
            told.append(f"passes over {whose}, whose {page.what} is {page.state}: work {page.work_id}")
        elif page.state != "done":
            told.append(
                f"blocked behind {whose}, whose {page.what} is {page.state}: work {page.work_id or 'is not owed'}"
            )
            break
        else:
            told.append(f"takes up {whose} next")
            break
    return told


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value) if isinstance(value, UUID) else value
