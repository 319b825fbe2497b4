"""Candidates between distillation and merging, and what a page knows of its own distillation."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

from memoryos_pipeline.domain.knowledge import Candidate, TraitDelta

TRAITS_ORDINAL = -1
"""Trait deltas of a page ride in one row before its candidates."""

FIND_EXTRACTION = text("""
    select page_id, conversation_id, tier, heat, heat_at, sealed_at, pinned_at, distill_cause,
           extract_ordinal, extracted_by, heat_tick,
           (select heat_ticks from memoryos.scope s where s.tenant_id = page.tenant_id and s.scope_id = page.scope_id)
      from memoryos.page where tenant_id = :tenant_id and page_id = :page_id
""")
LOCK_EXTRACTION = text(FIND_EXTRACTION.text + " for no key update")
MARK_EXTRACTED = text("""
    update memoryos.page
       set extract_ordinal = :extract_ordinal, extracted_by = :extracted_by, extracted_at = memoryos.now(),
           knowledge_count = :knowledge_count, version = version + 1
     where tenant_id = :tenant_id and page_id = :page_id
""")
INSERT = text("""
    insert into memoryos.candidate (tenant_id, page_id, ordinal, scope_id, extract_ordinal, payload)
    values (:tenant_id, :page_id, :ordinal, :scope_id, :extract_ordinal, :payload)
""").bindparams(bindparam("payload", type_=JSONB))
LOAD = text("""
    select ordinal, payload from memoryos.candidate
     where tenant_id = :tenant_id and page_id = :page_id order by ordinal
""")
DELETE = text("delete from memoryos.candidate where tenant_id = :tenant_id and page_id = :page_id")


@dataclass(frozen=True, slots=True)
class Extraction:
    """How far a page is with distillation, and what decides whether it is archived with it."""

    page_id: UUID
    conversation_id: UUID
    tier: str
    heat: float
    heat_at: datetime
    sealed_at: datetime
    pinned_at: datetime | None
    distill_cause: str | None
    extract_ordinal: int | None
    extracted_by: str | None
    heat_tick: int
    scope_ticks: int


@dataclass(frozen=True, slots=True)
class Found:
    """What distillation left for merging: candidates under their ordinals, and trait deltas."""

    candidates: tuple[tuple[int, Candidate], ...] = ()
    traits: tuple[TraitDelta, ...] = ()


def find_extraction(connection: Connection, tenant_id: UUID, page: UUID, *, lock: bool = False) -> Extraction | None:
    """Return where a page's distillation stands, locked on request; None when the page is gone."""
    query = LOCK_EXTRACTION if lock else FIND_EXTRACTION
    row = connection.execute(query, {"tenant_id": tenant_id, "page_id": page}).first()
    return Extraction(*row) if row else None


def mark_extracted(
    connection: Connection, tenant_id: UUID, page: UUID, *, ordinal: int, extracted_by: str, count: int
) -> None:  # fmt: skip
    """Note who distilled a page and how much was found; 0 is an explicit nothing."""
    values = {
        "tenant_id": tenant_id, "page_id": page, "extract_ordinal": ordinal, "extracted_by": extracted_by,
        "knowledge_count": count,
    }  # fmt: skip
    connection.execute(MARK_EXTRACTED, values)


def replace_candidates(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, page: UUID, ordinal: int, found: Found
) -> None:
    """Store what a page's distillation found, in place of what an earlier one left unmerged."""
    key = {"tenant_id": tenant_id, "page_id": page, "scope_id": scope_id, "extract_ordinal": ordinal}
    rows = [{**key, "ordinal": n, "payload": candidate_payload(one)} for n, one in found.candidates]
    if found.traits:
        rows.append({**key, "ordinal": TRAITS_ORDINAL, "payload": {"traits": [asdict(t) for t in found.traits]}})
    connection.execute(DELETE, {"tenant_id": tenant_id, "page_id": page})
    if rows:
        connection.execute(INSERT, rows)


def load_candidates(connection: Connection, tenant_id: UUID, page: UUID) -> Found:
    """Return what is waiting to be merged of a page, by ordinal."""
    rows = connection.execute(LOAD, {"tenant_id": tenant_id, "page_id": page}).all()
    candidates = tuple((n, candidate_of(payload)) for n, payload in rows if n != TRAITS_ORDINAL)
    traits = [trait for n, payload in rows if n == TRAITS_ORDINAL for trait in payload["traits"]]
    return Found(candidates, tuple(TraitDelta(**{**one, "evidence": tuple(one["evidence"])}) for one in traits))


def delete_candidates(connection: Connection, tenant_id: UUID, page: UUID) -> None:
    """Remove a page's candidates: they have been decided on."""
    connection.execute(DELETE, {"tenant_id": tenant_id, "page_id": page})


def candidate_payload(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate as JSON; moments are ISO 8601 with their offset."""
    moments = {"turn_at": _iso(candidate.turn_at), "event_at": _iso(candidate.event_at)}
    return {**asdict(candidate), **moments}


def candidate_of(payload: Mapping[str, Any]) -> Candidate:
    """Return the candidate a payload was made from."""
    sequences: dict[str, Sequence[Any]] = {
        "source_seqs": tuple(payload["source_seqs"]),
        "keywords": tuple(payload["keywords"]),
        "entities": tuple((name, kind) for name, kind in payload["entities"]),
    }
    moments = {"turn_at": _moment(payload["turn_at"]), "event_at": _moment(payload["event_at"])}
    return Candidate(**{**payload, **sequences, **moments})


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _moment(written: str | None) -> datetime | None:
    return datetime.fromisoformat(written) if written else None
