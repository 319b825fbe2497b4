"""Builders that walk pages through the warm lifecycle by running its stages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Unpack
from uuid import UUID

from sqlalchemy import text

from memoryos_pipeline.domain.ids import page_id
from memoryos_pipeline.domain.policies import DEFAULT, Policy
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.models.protocols import Embedder, LanguageModel
from memoryos_pipeline.stages.advance import advance
from memoryos_pipeline.stages.assign_segments import assign_segments
from memoryos_pipeline.stages.embed import embed
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.stages.summarize_page import summarize_page
from memoryos_pipeline.store.ledger import owe
from tests.builders import RecordOptions, claim_due, close, create_scope, record
from tests.conftest import Stack
from tests.doubles import HashtagModel

FIND_WORK = text("select work_id from memoryos.work where kind = :kind and subject_key = :subject")


@dataclass
class Walk:
    """A scope whose pages are moved on by hand, one stage after the other."""

    stack: Stack
    policy: Policy = DEFAULT
    embedder: Embedder | None = None
    language_model: LanguageModel | None = None

    @property
    def parts(self) -> Parts:
        """The parts every stage of this walk is given."""
        model = self.language_model or HashtagModel()
        return Parts(self.stack.app, self.embedder or HashingEmbedder(), model, self.policy)

    def seal(self, *contents: str, **options: Unpack[RecordOptions]) -> list[UUID]:
        """Record a conversation, close it and seal it; return its pages in order."""
        conversation = record(self.stack, *contents, **options)
        close(self.stack, conversation, options.get("user_id", "maya"))
        self.run(advance, WorkKind.ADVANCE)
        with self.stack.app.transaction(self.stack.tenant_id) as connection:
            query = text("select first_seq from memoryos.page where conversation_id = :id order by first_seq")
            firsts = connection.execute(query, {"id": conversation}).scalars().all()
        return [page_id(conversation, first) for first in firsts]

    def run(self, stage: Callable[[Parts, Lease], None], kind: WorkKind) -> int:
        """Run a stage on everything of its kind that is due; return how many rows that were."""
        due = claim_due(self.stack, kind)
        for lease in due:
            stage(self.parts, lease)
        return len(due)

    def claim(self, kind: WorkKind, subject: str, *, lease_seconds: float = 60) -> Lease:
        """Owe (again) and claim one work row."""
        with self.stack.app.transaction(self.stack.tenant_id) as connection:
            owe(connection, self.stack.tenant_id, [Owed(kind, subject, create_scope(self.stack))])
        with self.stack.ledger_database.across_tenants() as connection:
            ids = connection.execute(FIND_WORK, {"kind": kind, "subject": subject}).scalars().all()
        return self.stack.ledger.claim(ids, owner="test", lease_seconds=lease_seconds)[0]

    def summarize(self, pages: Sequence[UUID]) -> None:
        """Summarize pages and embed their summaries, in the given order."""
        for page in pages:
            summarize_page(self.parts, self.claim(WorkKind.SUMMARIZE, str(page)))
            embed(self.parts, self.claim(WorkKind.EMBED, f"summary:{page}"))

    def assign(self) -> None:
        """Run segment work until none is due."""
        while self.run(assign_segments, WorkKind.SEGMENT):
            pass

    def warm(self, *contents: str, **options: Unpack[RecordOptions]) -> list[UUID]:
        """Take a conversation all the way to warm pages; return them in order."""
        pages = self.seal(*contents, **options)
        self.summarize(pages)
        self.assign()
        return pages


def about(*topics: str, each: int = 5) -> list[str]:
    """Return `each` turns per topic, tagged and worded by nothing else, so that a topic makes one page."""
    return [f"#{topic} {topic} {topic}{n}" for topic in topics for n in range(each)]
