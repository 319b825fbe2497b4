"""Summarizing pages on a real Postgres."""

from itertools import permutations
from uuid import UUID

import pytest

from memoryos_pipeline.domain.errors import FencedError, InvalidOutputError
from memoryos_pipeline.domain.pages import PageSummary, PageText
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.models.protocols import Journal
from memoryos_pipeline.stages.summarize_page import summarize_page
from tests.builders import rows
from tests.conftest import Stack
from tests.doubles import HashtagModel
from tests.lifecycle_builders import Walk, about

CHAINS = "select page_id, chain_id, continues from memoryos.page order by first_seq"
METAS = "select summary, meta_summary from memoryos.page order by first_seq"
TOPICS = ("tennis", "tennis", "chess", "chess", "chess")


class OddModel(HashtagModel):
    """Does something meanwhile, or answers oddly."""

    def __init__(self, *, answer: str | None = None, meanwhile: object = None) -> None:
        self.text, self.meanwhile, self.seen = answer, meanwhile, []  # type: ignore[var-annotated]

    def summarize(self, page: PageText, *, journal: Journal) -> PageSummary:
        """Summarize, after the other thing."""
        self.seen.append(page)
        if callable(self.meanwhile):
            self.meanwhile()
        usual = super().summarize(page, journal=journal)
        return usual if self.text is None else PageSummary(self.text, (), (), False, self.name)


def _summarize(walk: Walk, page: UUID) -> None:
    summarize_page(walk.parts, walk.claim(WorkKind.SUMMARIZE, str(page)))


class TestSummarize:
    def test_a_page_gets_its_summary_and_owes_its_vector(self, stack: Stack) -> None:
        """Summary, keywords and model are stored, an event tells it, and the summary's vector is owed."""
        walk = Walk(stack)
        (page,) = walk.seal(*about("テニス"))
        _summarize(walk, page)
        stored = "select summary <> '', keywords, topics, summary_model, summarized_at is not null from memoryos.page"

        assert rows(stack, stored) == [(True, ["テニス"], ["テニス"], "hashtag/1", True)]
        assert rows(stack, "select subject_id, seq from memoryos.event where kind = 'page_summarized'") == [(page, 5)]
        owed = "select state from memoryos.work where kind = 'embed' and subject_key = :subject"
        assert rows(stack, owed, subject=f"summary:{page}") == [("ready",)]

    def test_the_model_sees_the_page_before(self, stack: Stack) -> None:
        """Turns of the page and of the one before it, in order, with the offset they were said in."""
        model = OddModel()
        walk = Walk(stack, language_model=model)
        pages = walk.seal(*about("tennis", "chess"))
        _summarize(walk, pages[1])
        (seen,) = model.seen

        assert [turn.seq for turn in seen.turns] == [6, 7, 8, 9, 10]
        assert [turn.seq for turn in seen.previous_turns] == [1, 2, 3, 4, 5]
        assert seen.turns[0].occurred_at.tzinfo is not None

    @pytest.mark.parametrize("order", [order for n, order in enumerate(permutations(range(5))) if n % 17 == 0])
    def test_chains_do_not_depend_on_which_summary_came_first(self, stack: Stack, order: tuple[int, ...]) -> None:
        """Two pages on tennis and three on chess are two chains, whatever order they are summarized in."""
        walk = Walk(stack)
        pages = walk.seal(*about(*TOPICS))
        for index in order:
            _summarize(walk, pages[index])

        assert rows(stack, CHAINS) == [
            (pages[0], pages[0], False),
            (pages[1], pages[0], True),
            (pages[2], pages[2], False),
            (pages[3], pages[2], True),
            (pages[4], pages[2], True),
        ]
        said = [summary for summary, _ in rows(stack, METAS)]
        metas = [said[0], "\n".join(said[:2]), said[2], "\n".join(said[2:4]), "\n".join(said[2:])]
        assert [meta for _, meta in rows(stack, METAS)] == metas


class TestRefuse:
    def test_an_empty_summary_is_refused(self, stack: Stack) -> None:
        """Blank text is an invalid answer, never a summary; the turns stay as they are."""
        walk = Walk(stack, language_model=OddModel(answer=" \n"))
        (page,) = walk.seal(*about("tennis"))
        with pytest.raises(InvalidOutputError):
            _summarize(walk, page)

        assert rows(stack, "select summary, summarized_at from memoryos.page") == [(None, None)]

    def test_a_late_run_leaves_nothing(self, stack: Stack) -> None:
        """A run whose lease was taken over while the model answered writes no summary and owes nothing."""
        walk = Walk(stack)
        (page,) = walk.seal(*about("tennis"))
        late = walk.claim(WorkKind.SUMMARIZE, str(page), lease_seconds=0)
        walk.claim(WorkKind.SUMMARIZE, str(page))
        with pytest.raises(FencedError):
            summarize_page(walk.parts, late)

        assert rows(stack, "select summary from memoryos.page") == [(None,)]
        assert rows(stack, "select 1 from memoryos.work where subject_key like 'summary:%'") == []
        assert rows(stack, "select 1 from memoryos.event where kind = 'page_summarized'") == []

    def test_a_user_erased_meanwhile_ends_quietly(self, stack: Stack) -> None:
        """Erasure during the model's answer fences the run; nothing of the user comes back."""
        erase = "delete from memoryos.scope returning scope_id"
        walk = Walk(stack, language_model=OddModel(meanwhile=lambda: rows(stack, erase)))
        (page,) = walk.seal(*about("tennis"))
        with pytest.raises(FencedError):
            _summarize(walk, page)

        assert rows(stack, "select 1 from memoryos.page") == []

    def test_erased_turns_are_not_summarized(self, stack: Stack) -> None:
        """A page without turns is not shown to a model; its work is simply done."""
        model = OddModel()
        walk = Walk(stack, language_model=model)
        (page,) = walk.seal(*about("tennis"))
        rows(stack, "delete from memoryos.turn returning seq")
        _summarize(walk, page)

        assert model.seen == []
        assert rows(stack, "select state from memoryos.work where kind = 'summarize'") == [("done",)]

    def test_no_connection_is_held_while_the_model_answers(self, stack: Stack) -> None:
        """The pool has every connection back while the model is waited for."""
        held: list[int] = []
        pool = stack.app.engine.pool
        model = OddModel(meanwhile=lambda: held.append(pool.checkedout()))  # type: ignore[attr-defined]
        walk = Walk(stack, language_model=model)
        (page,) = walk.seal(*about("tennis"))
        _summarize(walk, page)

        assert held == [0]
