"""Filters: what may answer a question at all. A gate before every limit, never a cut after one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np
from sqlalchemy import Connection

from memoryos_pipeline.domain.ids import conversation_id
from memoryos_pipeline.models.lexical import normalize_text
from memoryos_pipeline.recall.columns import Flags, Ids, Places, find, ids_of, unpack
from memoryos_pipeline.store.matching import MATCHING_LAYOUT, Match, read_matching
from memoryos_pipeline.store.search import Frame, ScopeKey

Tier = Literal["hot", "warm", "archived", "cold"]
"""Turns not sealed yet; turns and summaries of warm pages; turns of archived pages; knowledge."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that all have to hold; None leaves one out.

    `since` and `until` (half-open) bound the event: when a turn was said, when what a statement tells happened (or was
    said), and a page by any part of it. `speaker` is who said a turn or whom a statement is from, however it is
    written; pages have none. `conversation_id` is the caller's name of a conversation.
    """

    since: datetime | None = None
    until: datetime | None = None
    tiers: tuple[Tier, ...] | None = None
    conversation_id: str | None = None
    speaker: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether everything passes."""
        return self == ANYTHING

    def holds_at(self, at: datetime) -> bool:
        """Tell whether something that happened then passes."""
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)

    def is_by(self, speaker: str) -> bool:
        """Tell whether what somebody of this name said passes."""
        return self.speaker is None or normalize_text(self.speaker) == normalize_text(speaker)

    def spellings(self, speakers: Sequence[tuple[str, str]]) -> list[str] | None:
        """Return how the speaker asked for is written among those (name, role) of the scope, and as asked."""
        if self.speaker is None:
            return None
        known = [name for name, _ in speakers if self.is_by(name)]
        return list(dict.fromkeys([self.speaker, *known]))


ANYTHING = Filters()


@dataclass(frozen=True, slots=True)
class Gate:
    """Everything of a memory that passes the filters, newest first; kinds are numbers of KINDS."""

    owners: Ids
    kinds: Places

    def __len__(self) -> int:
        return len(self.owners)

    def admits(self, owners: Ids) -> Flags:
        """Tell of each owner whether it passes."""
        admitted: Flags = find(self.owners, owners) >= 0
        return admitted


def read_gate(
    connection: Connection, key: ScopeKey, filters: Filters, *, frame: Frame, kinds: Sequence[str],
    include_history: bool,
) -> Gate:  # fmt: skip
    """Return what passes, of these kinds."""
    where = filters.conversation_id
    match = Match(
        kinds=kinds,
        since=filters.since,
        until=filters.until,
        tiers=filters.tiers,
        conversation_id=None if where is None else conversation_id(key.scope_id, where),
        speakers=filters.spellings(frame.speakers),
        include_history=include_history,
    )
    found = unpack(read_matching(connection, key, match), MATCHING_LAYOUT)
    return Gate(ids_of(found), found["kind"].astype(np.intp))
