"""Composition root: the only place that names concrete parts and which stage does which kind of work."""

from collections.abc import Callable, Sequence
from typing import Protocol

from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.domain.work import Lease, WorkKind
from memoryos_pipeline.models.factory import build_embedder, build_language_model
from memoryos_pipeline.settings import LEDGER_POOL_OF_A_RELAY, Settings
from memoryos_pipeline.stages.advance import advance
from memoryos_pipeline.stages.apply_heat import apply_heat
from memoryos_pipeline.stages.assign_segments import assign_segments
from memoryos_pipeline.stages.distill_page import distill_page
from memoryos_pipeline.stages.embed import embed, embed_together
from memoryos_pipeline.stages.forget import forget
from memoryos_pipeline.stages.merge_knowledge import merge_knowledge
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.stages.set_aside_page import put_back_page, set_aside_page
from memoryos_pipeline.stages.summarize_page import summarize_page
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.hot_copy import HotCopies

Stage = Callable[[Parts, Lease], None]
Batch = Callable[[Parts, Sequence[Lease]], None]


class Quarantine(Protocol):
    """Sets aside what a line of work stands at; True when the line can go on."""

    def __call__(self, parts: Parts, lease: Lease, *, error_class: str, reason: str) -> bool: ...


STAGES: dict[str, Stage] = {
    WorkKind.ADVANCE: advance,
    WorkKind.SUMMARIZE: summarize_page,
    WorkKind.EMBED: embed,
    WorkKind.SEGMENT: assign_segments,
    WorkKind.HEAT: apply_heat,
    WorkKind.DISTILL: distill_page,
    WorkKind.MERGE: merge_knowledge,
    WorkKind.MERGE_PAGE: put_back_page,
    WorkKind.FORGET: forget,
}
BATCHES: dict[tuple[str, str], Batch] = {
    (WorkKind.EMBED, "summary"): embed_together,
    (WorkKind.EMBED, "knowledge"): embed_together,
}
"""Kinds, and what their subjects begin with, of which rows of one tenant can be done in one transaction, all or none.

Turns of pages are none of them: their transaction holds the conversation, and whoever talks would wait.
"""
QUARANTINES: dict[str, Quarantine] = {WorkKind.MERGE: set_aside_page}
"""Kinds that take things in line: what they fail on is given up instead of the whole line."""


def batch_of(lease: Lease) -> Batch | None:
    """Return what does several rows like this one at once, if anything does."""
    return BATCHES.get((lease.kind, lease.subject_key.partition(":")[0]))


def build_parts(settings: Settings) -> Parts:
    """Build the parts of one process; call it after a fork, never before."""
    embedder = build_embedder(settings)
    return Parts(
        database=Database(settings.database_url.get_secret_value(), pool_size=settings.database_pool_size),
        embedder=embedder,
        language_model=build_language_model(settings, embedder),
        policy=DEFAULT,
        max_attempts=settings.max_attempts,
        hot_copies=build_hot_copies(settings),
    )


def build_hot_copies(settings: Settings) -> HotCopies | None:
    """Return where hot tails are copied to; None when the settings keep no copies."""
    if not settings.hot_copy_seconds:
        return None
    url, prefix = settings.broker_url.get_secret_value(), settings.broker_key_prefix
    return HotCopies(url, key_prefix=prefix, seconds=settings.hot_copy_seconds)


def build_ledger_database(settings: Settings, *, pool_size: int = LEDGER_POOL_OF_A_RELAY) -> Database:
    """Connect as the ledger role. Every use asks first whether the connection still lives.

    A claim that fails on a connection from before a restart of Postgres would cost its doorbell.
    """
    url = settings.ledger_url.get_secret_value()
    return Database(url, pool_size=pool_size, application_name="memoryos-ledger", ping=True)


def build_owner(settings: Settings) -> Database:
    """Connect as the owner role: migrations, keys, the clock."""
    return Database(settings.owner_url.get_secret_value(), pool_size=1, application_name="memoryos-owner")
