"""Small builders of turns, pages, candidates and neighbours."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from memoryos_pipeline.domain.budget import Payment
from memoryos_pipeline.domain.ids import derive_id
from memoryos_pipeline.domain.knowledge import Candidate, Neighbour
from memoryos_pipeline.domain.language import detect_language
from memoryos_pipeline.domain.pages import PageText
from memoryos_pipeline.domain.turns import Turn

WEDNESDAY = "2026-05-13T20:41:00-05:00"
SOME_ID = derive_id("test", "page")


def turn(content: str, seq: int = 1, **changes: Any) -> Turn:
    """A turn of Maya, said on Wednesday, 13 May 2026, in Chicago."""
    at = datetime.fromisoformat(changes.pop("at", WEDNESDAY))
    values: dict[str, Any] = {"role": "user", "speaker": "Maya", "kind": "normal", **changes}
    return Turn(
        turn_id=derive_id("turn", seq, content[:50]), conversation_id=SOME_ID, scope_id=SOME_ID, seq=seq,
        content=content, lang=detect_language(content), occurred_at=at, recorded_at=at, **values,
    )  # fmt: skip


def page(*turns: Turn | str, before: Sequence[Turn] = ()) -> PageText:
    """A page of turns; plain text is a turn of Maya."""
    made = [one if isinstance(one, Turn) else turn(one, seq) for seq, one in enumerate(turns, start=1)]
    return PageText(SOME_ID, tuple(made), tuple(before))


def neighbour(candidate: Candidate, **changes: Any) -> Neighbour:
    """What a candidate would be once it is known."""
    values: dict[str, Any] = {
        "knowledge_id": derive_id("knowledge", candidate.content),
        "lineage_id": derive_id("knowledge", candidate.content),
        "version": 1,
        "kind": candidate.kind,
        "content": candidate.content,
        "actor": candidate.actor,
        "slot": candidate.slot,
        "slot_value": candidate.slot_value,
        "turn_at": candidate.turn_at,
        "event_at": candidate.event_at,
        "similarity": 0.9,
    }
    return Neighbour(**{**values, **changes})


class MemoryJournal:
    """A journal in memory, honouring the port."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, bytes], dict[str, Any]] = {}
        self.paid: list[dict[str, Any]] = []

    def find(self, task: str, request_sha256: bytes) -> dict[str, Any] | None:
        return self.kept.get((task, request_sha256))

    def keep(self, task: str, request_sha256: bytes, response: dict[str, Any], **paid: Any) -> None:
        self.kept[task, request_sha256] = response
        self.paid.append(paid)

    @contextmanager
    def paying(self, provider: str, *, tokens: int, seconds: float) -> Iterator[Payment]:
        payment = Payment()
        yield payment
        assert 0 < (payment.tokens or 0) <= tokens, f"{provider} took {payment.tokens} tokens of at most {tokens}"
