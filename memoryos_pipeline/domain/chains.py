"""Chains: consecutive pages that go on with the same subject, and the running summary they carry."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

META_CHARACTERS = 600


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A summarized page as its chain sees it."""

    page_id: UUID
    summary: str
    continues: bool


def extend_meta(before: str | None, summary: str) -> str:
    """Return a running summary with one page more, at most 600 characters; its beginning stays."""
    if not before:
        return summary[:META_CHARACTERS]
    room = META_CHARACTERS - min(len(summary), META_CHARACTERS // 2) - 1
    return f"{before[:room]}\n{summary}"[:META_CHARACTERS]


def run_metas(before: str | None, links: Iterable[ChainLink]) -> Iterator[tuple[UUID, str]]:
    """Yield the running summary of each page in order; `before` is that of the page ahead of the first.

    The pages after the first are followed as long as they continue: whichever page was summarized last, the
    chain reads the same.
    """
    for index, link in enumerate(links):
        if index and not link.continues:
            return
        before = extend_meta(before if link.continues else None, link.summary)
        yield link.page_id, before
