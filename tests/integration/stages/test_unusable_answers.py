"""Whatever a provider says instead of an answer, no memory is written, changed or removed by it."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.errors import InvalidOutputError, ModelError, ModelRefusedError
from memoryos_pipeline.domain.pages import PageSummary, PageText
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.models.anthropic import AnthropicModel
from memoryos_pipeline.models.anthropic_client import AnthropicClient
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.models.protocols import Journal
from memoryos_pipeline.stages.distill_page import distill_page
from memoryos_pipeline.stages.merge_knowledge import merge_knowledge
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.stages.summarize_page import summarize_page
from tests.builders import rows
from tests.conftest import Stack
from tests.doubles import HashtagModel
from tests.integration.stages.cold import Cold
from tests.lifecycle_builders import Walk
from tests.stub_server.server import ERRORS, StubServer

UNUSABLE = (
    *ERRORS, "garbage", "truncated", "refused", "refused_in_words", "thought_only", "empty", "unknown_reason",
    "window_exceeded", "curly_quotes", "error_text", "wrong_shape", "hang_up",
)  # fmt: skip
SMALL_WINDOW = 30_000
LONG_TURN = "rain over the harbour " * 600
KNOWN_BEFORE = ("I live in Porto.", "I live in Osaka.")
UNTOUCHED = ("knowledge", "source", "link", "verdict", "embedding", "posting", "entity", "trait")


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        yield server


def _behave(stub: StubServer, stack: Stack, mode: str) -> None:
    """Let the provider answer in another way, as if it had never answered before."""
    stub.mode = mode
    with stack.owner.across_tenants() as connection:
        connection.execute(text("delete from memoryos.provider_state"))


def _model(stub: StubServer) -> AnthropicModel:
    return AnthropicModel(AnthropicClient(model="claude-stub", api_key="k", base_url=stub.url, deadline_seconds=20))


class Wordy(HashtagModel):
    """Says more than was said."""

    def summarize(self, page: PageText, *, journal: Journal) -> PageSummary:
        """Repeat it all, and go on."""
        usual = super().summarize(page, journal=journal)
        return PageSummary(usual.summary * 2 + "and so on, " * 60, (), (), False, self.name)


class TestDistill:
    def test_no_failure_becomes_knowledge(self, stack: Stack, stub: StubServer) -> None:
        """Cut, refused, empty, broken or an error's own words: the page waits, and all that was known stays."""
        cold = Cold(stack)
        cold.parts = Parts(stack.app, HashingEmbedder(), _model(stub))
        cold.page(KNOWN_BEFORE[0])
        cold.work()
        before = cold.dump()
        for mode in UNUSABLE:
            _behave(stub, stack, mode)
            cold.page(f"{KNOWN_BEFORE[1]} ({mode})", day=1, conversation=mode)
            [lease] = cold.claim(WorkKind.DISTILL)
            with pytest.raises(ModelError):
                distill_page(cold.parts, lease)
            after = cold.dump()
            assert [mode for name in UNTOUCHED if after[name] != before[name]] == []
        assert stub.calls > len(UNUSABLE)
        waiting = cold.rows("select count(*) from memoryos.page where extracted_at is null and knowledge_count is null")

        assert waiting == [(len(UNUSABLE),)]
        assert cold.rows("select count(*) from memoryos.candidate") == [(0,)]

    @pytest.mark.parametrize("mode", ["fenced", "two_fences"])
    def test_an_answer_in_other_clothes_is_read(self, stack: Stack, stub: StubServer, mode: str) -> None:
        """In a fence, among chat, twice: the first whole answer counts."""
        stub.mode = mode
        cold = Cold(stack)
        cold.parts = Parts(stack.app, HashingEmbedder(), _model(stub))
        cold.page(KNOWN_BEFORE[0])
        cold.work()

        assert [KNOWN_BEFORE[0] in live for live in cold.live()] == [True]

    def test_a_made_up_number_is_asked_about_once(self, stack: Stack, stub: StubServer) -> None:
        """Put right, it is kept; said again, the statement is left out and the others stay."""
        cold = Cold(stack)
        cold.parts = Parts(stack.app, HashingEmbedder(), _model(stub))
        item = {"kind": "fact", "actor": "Maya", "source_turns": [1], "importance": 0.5}
        made_up = {**item, "content": "Maya lives at number 4711."}
        right, other = {**item, "content": "Maya lives at number 305."}, {**item, "content": "Maya lives near the sea."}
        for user, second in (("maya", right), ("jun", made_up)):
            stub.answers.extend({"statements": [each, other], "traits": []} for each in (made_up, second))
            cold.page(f"I, {user}, live at number 305, near the sea.", user=user)
            cold.work()

        assert [content.partition("] ")[2] for content in cold.live()] == [
            "Maya lives at number 305.", "Maya lives near the sea.", "Maya lives near the sea."
        ]  # fmt: skip
        assert "has a number" in stub.requests[1]["messages"][0]["content"]


class TestMerge:
    def test_no_failure_retires_anything(self, stack: Stack, stub: StubServer) -> None:
        """While nobody says what becomes of two statements the one that is known stays, and the other waits."""
        cold = Cold(stack)
        model = _model(stub)
        cold.parts = Parts(stack.app, HashingEmbedder(), model, Policy(neighbour_floor=0.0))
        cold.page(KNOWN_BEFORE[0])
        cold.work()
        cold.page(KNOWN_BEFORE[1], day=1)
        [lease] = cold.claim(WorkKind.DISTILL)
        distill_page(cold.parts, lease)
        before = cold.dump()
        for mode in UNUSABLE:
            _behave(stub, stack, mode)
            [lease] = cold.claim(WorkKind.MERGE)
            with pytest.raises(ModelError):
                merge_knowledge(cold.parts, lease)
            stack.ledger.release([lease])
            assert cold.dump() == before, mode
        assert stub.calls >= len(UNUSABLE)
        _behave(stub, stack, "ok")
        cold.work()

        assert len(cold.live()) == 2


class TestSummarize:
    def test_a_summary_is_no_longer_than_what_it_sums_up(self, stack: Stack) -> None:
        """Longer than the page with its names: an invalid answer; the turns stay as they are and wait."""
        walk = Walk(stack, language_model=Wordy())
        (page,) = walk.seal("It rained.", "Again.")
        lease = walk.claim(WorkKind.SUMMARIZE, str(page))
        with pytest.raises(InvalidOutputError, match="longer"):
            summarize_page(walk.parts, lease)

        assert rows(stack, "select summary, summarized_at from memoryos.page") == [(None, None)]

    def test_too_long_is_asked_again_once(self, stack: Stack, stub: StubServer) -> None:
        """The model is told what was wrong; its second, short answer is kept, and no other."""
        walk = Walk(stack, language_model=_model(stub))
        (page,) = walk.seal("It rained.", "Again.")
        wordy = {"summary": "It rained and rained. " * 50, "keywords": [], "topics": [], "continues": False}
        stub.answers.extend([wordy, {**wordy, "summary": "It rained twice."}])
        summarize_page(walk.parts, walk.claim(WorkKind.SUMMARIZE, str(page)))

        assert "longer" in stub.requests[1]["messages"][0]["content"]
        assert rows(stack, "select summary from memoryos.page") == [("It rained twice.",)]

    def test_a_long_session_fits_a_small_window(self, stack: Stack, stub: StubServer) -> None:
        """Thirty long turns due at once: each page is asked for whole, then smaller, and no page a third time."""
        stub.window_characters = SMALL_WINDOW
        walk = Walk(stack, language_model=_model(stub))
        pages = walk.seal(*(f"{LONG_TURN}{n}" for n in range(30)))
        for page in pages:
            summarize_page(walk.parts, walk.claim(WorkKind.SUMMARIZE, str(page)))
        sizes = [len(request["messages"][0]["content"]) for request in stub.requests]

        assert len(pages) == 6
        assert len(sizes) == 2 * len(pages)
        assert max(sizes[1::2]) < SMALL_WINDOW < min(sizes[::2])
        assert rows(stack, "select count(*) from memoryos.page where summarized_at is not null") == [(6,)]

    def test_what_fits_no_window_is_given_up_and_kept(self, stack: Stack, stub: StubServer) -> None:
        """Refused smaller too, it is not asked for ever: the error is final and every turn is still there."""
        stub.window_characters = 100
        walk = Walk(stack, language_model=_model(stub))
        (page,) = walk.seal(LONG_TURN)
        with pytest.raises(ModelRefusedError):
            summarize_page(walk.parts, walk.claim(WorkKind.SUMMARIZE, str(page)))

        assert stub.calls == 2
        assert rows(stack, "select content from memoryos.turn") == [(LONG_TURN,)]
