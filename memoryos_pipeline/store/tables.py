"""The tables of schema `memoryos` as SQLAlchemy Core describes them; a test holds them equal to the migrations."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import BIGINT, BOOLEAN, DATE, INTEGER, SMALLINT, TEXT, UUID, Column, MetaData, Table
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, DOUBLE_PRECISION, JSONB, TIMESTAMP
from sqlalchemy.types import TypeEngine, UserDefinedType


class _Named(UserDefinedType[Any]):
    """A type of Postgres that SQLAlchemy does not know, by its name."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        return self.name


TYPES: dict[str, TypeEngine[Any]] = {
    "uuid": UUID(), "text": TEXT(), "boolean": BOOLEAN(), "smallint": SMALLINT(), "integer": INTEGER(),
    "bigint": BIGINT(), "float": DOUBLE_PRECISION(), "moment": TIMESTAMP(timezone=True),
    "date": DATE(), "bytes": BYTEA(), "json": JSONB(), "texts": ARRAY(TEXT()), "uuids": ARRAY(UUID()),
    "name": _Named("name"), "halfvec": _Named("halfvec"), "xid8": _Named("xid8"),
}  # fmt: skip
"""The words the tables below are spelled with."""

METADATA = MetaData(schema="memoryos")


def _table(name: str, *, key: str, required: str = "", optional: str = "") -> Table:
    """Describe a table: each argument is a list of `column:type`, in the order of the primary key for `key`."""
    return Table(
        name,
        METADATA,
        *(Column(column, kind, primary_key=True, autoincrement=False) for column, kind in _columns(key)),
        *(Column(column, kind, nullable=False) for column, kind in _columns(required)),
        *(Column(column, kind, nullable=True) for column, kind in _columns(optional)),
    )


def _columns(spelled: str) -> Iterator[tuple[str, TypeEngine[Any]]]:
    for word in spelled.split():
        column, _, kind = word.partition(":")
        yield column, TYPES[kind]


clock = _table(
    "clock",
    key="only_row:boolean",
    optional="frozen_at:moment",
)
tenant = _table(
    "tenant",
    key="tenant_id:uuid",
    required="name:text on_hold:boolean created_at:moment",
    optional="tokens_per_day:bigint",
)
api_key = _table(
    "api_key",
    key="tenant_id:uuid key_id:uuid",
    required="prefix:text key_sha256:bytes label:text scopes:texts created_at:moment",
    optional="expires_at:moment revoked_at:moment last_used_at:moment",
)
reader_grant = _table(
    "reader_grant",
    key="tenant_id:uuid login_role:name",
    required="created_at:moment",
)
policy = _table(
    "policy",
    key="tenant_id:uuid policy_id:uuid",
    required="preset:text version:integer settings:json created_at:moment",
    optional="user_id:text",
)
scope = _table(
    "scope",
    key="tenant_id:uuid scope_id:uuid",
    required="""
        user_id:text agent_id:text preset:text preset_version:integer extract_ordinal:bigint
        merged_ordinal:bigint lock_version:bigint created_at:moment heat_ticks:bigint
    """,
    optional="erased_at:moment idle_flush_minutes:float forecast_of:uuid turn_ticks:bigint",
)
conversation = _table(
    "conversation",
    key="tenant_id:uuid conversation_id:uuid",
    required="""
        scope_id:uuid external_id:text next_seq:bigint sealed_through:bigint indexed_through:bigint
        assigned_through:bigint ahead_through:bigint user_turns:bigint last_activity_at:moment created_at:moment
    """,
    optional="last_turn_at:moment tail_turn_at:moment before_turn_at:moment closed_at:moment",
)
turn = _table(
    "turn",
    key="tenant_id:uuid conversation_id:uuid seq:bigint",
    required="""
        turn_id:uuid scope_id:uuid client_turn_id:text body_sha256:bytes role:text speaker:text
        content:text metadata:json kind:text lang:text occurred_at:moment
        utc_offset_minutes:smallint recorded_at:moment position:xid8
    """,
    optional="parts:json",
)
page = _table(
    "page",
    key="tenant_id:uuid page_id:uuid",
    required="""
        scope_id:uuid conversation_id:uuid first_seq:bigint last_seq:bigint first_turn_at:moment
        last_turn_at:moment tier:text lang:text keywords:texts topics:texts heat:float
        heat_at:moment sealed_at:moment version:bigint heat_tick:bigint visits:integer
    """,
    optional="""
        summary:text continues:boolean prev_page_id:uuid chain_id:uuid meta_summary:text
        summary_model:text summarized_at:moment indexed_at:moment assigned_at:moment cools_at:moment
        distill_cause:text extract_ordinal:bigint extracted_by:text extracted_at:moment
        knowledge_count:integer pinned_at:moment archived_at:moment cools_at_tick:bigint
    """,
)
rollup = _table(
    "rollup",
    key="tenant_id:uuid scope_id:uuid period:text",
    required="""
        summary:text keywords:texts lang:text page_count:integer page_ids:uuids model:text
        refreshed_at:moment version:integer
    """,
)
segment = _table(
    "segment",
    key="tenant_id:uuid segment_id:uuid",
    required="""
        scope_id:uuid theme:text summary:text keywords:texts n_visit:integer l_interaction:integer
        last_visit_at:moment heat_linear:float page_count:integer created_at:moment version:bigint
    """,
)
page_segment = _table(
    "page_segment",
    key="tenant_id:uuid page_id:uuid segment_id:uuid",
    required="theme_rank:smallint assigned_at:moment",
)
candidate = _table(
    "candidate",
    key="tenant_id:uuid page_id:uuid ordinal:integer",
    required="scope_id:uuid extract_ordinal:bigint payload:json",
)
knowledge = _table(
    "knowledge",
    key="tenant_id:uuid knowledge_id:uuid",
    required="""
        scope_id:uuid lineage_id:uuid version:integer kind:text content:text content_sha256:bytes
        lang:text actor:text keywords:texts attributes:json importance:float w0:float
        strength_days:float last_reinforced_at:moment turn_at:moment valid_from:moment status:text
        recorded_at:moment extracted_by:text
    """,
    optional="""
        slot:text slot_value:text forget_at:moment pinned_at:moment event_at:moment
        event_precision:text valid_to:moment superseded_by:uuid close_reason:text retired_at:moment
        forgotten_at:moment purge_at:moment work_id:bigint expires_at:moment
    """,
)
knowledge_past = _table(
    "knowledge_past",
    key="tenant_id:uuid knowledge_id:uuid past_id:bigint",
    required="""
        scope_id:uuid until:moment importance:float strength_days:float last_reinforced_at:moment
        valid_from:moment status:text
    """,
    optional="""
        slot:text forget_at:moment pinned_at:moment valid_to:moment superseded_by:uuid close_reason:text
        retired_at:moment forgotten_at:moment purge_at:moment
    """,
)
knowledge_source = _table(
    "knowledge_source",
    key="tenant_id:uuid knowledge_id:uuid conversation_id:uuid seq:bigint",
    required="page_id:uuid added_at:moment",
)
turn_left = _table(
    "turn_left",
    key="tenant_id:uuid conversation_id:uuid seq:bigint",
    required="left_at:moment",
)
knowledge_note = _table(
    "knowledge_note",
    key="tenant_id:uuid knowledge_id:uuid version:integer",
    required="context:text keywords:texts tags:texts created_at:moment",
    optional="cause_knowledge_id:uuid",
)
knowledge_link = _table(
    "knowledge_link",
    key="tenant_id:uuid source_id:uuid target_id:uuid type:text",
    required="scope_id:uuid weight:float reason:text created_by:text created_at:moment",
)
verdict = _table(
    "verdict",
    key="tenant_id:uuid verdict_id:uuid",
    required="scope_id:uuid decision:text new_content:text evidence:json decided_by:text decided_at:moment",
    optional="new_knowledge_id:uuid old_knowledge_id:uuid old_content:text undone_at:moment",
)
entity = _table(
    "entity",
    key="tenant_id:uuid entity_id:uuid",
    required="scope_id:uuid name:text name_norm:text type:text mentions:integer created_at:moment",
)
mention = _table(
    "mention",
    key="tenant_id:uuid knowledge_id:uuid entity_id:uuid",
)
relation = _table(
    "relation",
    key="tenant_id:uuid relation_id:uuid",
    required="scope_id:uuid source_id:uuid name:text target_id:uuid knowledge_id:uuid valid_from:moment",
    optional="valid_to:moment",
)
trait = _table(
    "trait",
    key="tenant_id:uuid scope_id:uuid actor:text dimension:text",
    required="level:text confidence:float knowledge_ids:uuids updated_at:moment version:integer",
)
vector_space = _table(
    "vector_space",
    key="space_id:integer",
    required="model:text revision:text dimensions:integer token_cap:integer",
)
embedding = _table(
    "embedding",
    key="tenant_id:uuid space_id:integer owner_kind:text owner_id:uuid",
    required="scope_id:uuid vec:halfvec input_sha256:bytes tokens:integer truncated:boolean",
)
posting = _table(
    "posting",
    key="tenant_id:uuid scope_id:uuid term:text owner_kind:text owner_id:uuid",
    required="tf:integer terms:integer",
)
posting_length = _table(
    "posting_length",
    key="tenant_id:uuid scope_id:uuid owner_kind:text owner_id:uuid",
    required="terms:integer asks_only:boolean ends_asking:boolean tells_time:boolean marks_version:smallint",
    optional="conversation_id:uuid seq:bigint at:moment speaker:text",
)
work = _table(
    "work",
    key="work_id:bigint",
    required="""
        tenant_id:uuid kind:text subject_key:text scope_id:uuid generation:bigint state:text
        attempts:integer max_attempts:integer deferrals:integer run_after:moment fence:bigint
        executions:bigint created_at:moment begun:boolean
    """,
    optional="""
        lease_until:moment owner:text enqueued_at:moment last_error_class:text finished_at:moment
        trace_id:text deferred_since:moment claimed_at:moment task_id:text last_error:text
    """,
)
dead_letter = _table(
    "dead_letter",
    key="tenant_id:uuid work_id:bigint fence:bigint",
    required="at:moment error_class:text error:text",
    optional="replayed_at:moment",
)
llm_call = _table(
    "llm_call",
    key="tenant_id:uuid task:text request_sha256:bytes",
    required="""
        scope_id:uuid work_id:bigint fence:bigint model:text prompt_version:text response:json
        tokens_in:integer tokens_out:integer at:moment
    """,
)
periodic_run = _table(
    "periodic_run",
    key="name:text slot:moment",
    required="started_at:moment",
    optional="owed:integer",
)
heartbeat = _table(
    "heartbeat",
    key="process:text",
    required="role:text beat_at:moment completed:bigint queues:texts",
)
paused_kind = _table(
    "paused_kind",
    key="kind:text",
    required="paused_at:moment paused_by:text reason:text",
)
alarm = _table(
    "alarm",
    key="name:text subject:text",
    required="since:moment seen_at:moment sentence:text",
)
counter = _table(
    "counter",
    key="name:text",
    required="total:bigint",
)
doctor_run = _table(
    "doctor_run",
    key="slot:moment",
    required="started_at:moment tenants:integer unchecked:integer violations:json",
    optional="finished_at:moment",
)
tally = _table(
    "tally",
    key="tenant_id:uuid kind:text minute:moment outcome:text",
    required="count:bigint",
)
budget = _table(
    "budget",
    key="tenant_id:uuid day:date",
    required="spent:bigint",
)
reservation = _table(
    "reservation",
    key="tenant_id:uuid reservation_id:uuid",
    required="day:date tokens:bigint expires_at:moment",
)
provider_state = _table(
    "provider_state",
    key="provider:text",
    required="phase:text window_at:moment calls:integer failures:integer trips:integer changed_at:moment",
    optional="retry_at:moment reason:text",
)
provider_limit = _table(
    "provider_limit",
    key="provider:text",
    required="minute_at:moment minute_calls:integer hour_at:moment hour_calls:integer",
    optional="calls_per_minute:integer calls_per_hour:integer calls_at_once:integer",
)
provider_call = _table(
    "provider_call",
    key="provider:text call_id:uuid",
    required="expires_at:moment",
)
event = _table(
    "event",
    key="tenant_id:uuid event_id:bigint",
    required="position:xid8 kind:text scope_id:uuid at:moment recorded_at:moment",
    optional="conversation_id:uuid subject_id:uuid related_id:uuid seq:bigint amount:float work_id:bigint",
)
access_event = _table(
    "access_event",
    key="tenant_id:uuid retrieval_id:uuid owner_kind:text owner_id:uuid cause:text",
    required="scope_id:uuid at:moment",
    optional="applied_at:moment",
)
erasure_receipt = _table(
    "erasure_receipt",
    key="tenant_id:uuid receipt_id:uuid",
    required="subject_hash:bytes requested_at:moment",
    optional="done_at:moment rows_removed:bigint",
)
deletion_ledger = _table(
    "deletion_ledger",
    key="tenant_id:uuid subject_hash:bytes",
    required="at:moment",
)
