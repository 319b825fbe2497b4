"""What counts as an answer in a context, and the plain baseline beside it."""

from typing import Any

from memoryos_pipeline.demo.baseline import Bm25
from memoryos_pipeline.demo.questions import ask, holds_gold
from memoryos_pipeline.demo.system import system_environment

QUESTION = {
    "user_id": "maya",
    "agent_id": "companion",
    "question": "Which medicine?",
    "gold": ["en-1"],
    "asked_at": "2026-09-21T09:00:00-05:00",
}
TURNS = [
    {
        "client_turn_id": "en-0",
        "occurred_at": "2026-05-04T18:00:00-05:00",
        "speaker": "Maya",
        "content": "Hello there.",
    },
    {
        "client_turn_id": "en-1",
        "occurred_at": "2026-05-05T18:00:00-05:00",
        "speaker": "Maya",
        "content": "No medicine.",
    },
]


def _item(kind: str, *sources: str) -> dict[str, Any]:
    return {"kind": kind, "source_turns": [{"client_turn_id": name} for name in sources]}


class TestHit:
    def test_a_gold_turn_or_knowledge_citing_one_counts(self) -> None:
        """The turn itself answers, and so does knowledge that came from it."""
        assert holds_gold([_item("turn", "en-1")], {"en-1"})
        assert holds_gold([_item("turn", "en-0"), _item("knowledge", "en-0", "en-1")], {"en-1"})

    def test_a_summary_or_a_trait_does_not_count(self) -> None:
        """A page's summary need not say it, a trait has no source, and another turn is no answer."""
        items = [_item("page", "en-1"), {"section": "profile", "line": "x"}, _item("turn", "en-0")]

        assert not holds_gold(items, {"en-1"})


class TestAsk:
    def test_a_question_is_asked_as_of_its_own_date(self) -> None:
        """The body names the moment, the budget and whose memory is asked; both scores come back."""

        class Client:
            def request(self, method: str, path: str, *, json: Any = None) -> Any:
                self.sent = (method, path, json)
                return {"items": [_item("turn", "en-0")]}

        client = Client()
        asked = ask(client, QUESTION, baseline=Bm25(TURNS))

        assert client.sent == (
            "POST",
            "/v1/context",
            {
                "user_id": "maya",
                "agent_id": "companion",
                "query": "Which medicine?",
                "now": "2026-09-21T09:00:00-05:00",
                "token_budget": 800,
            },
        )
        assert (asked.hit, asked.bm25_hit) == (False, True)


class TestBaseline:
    def test_it_fills_the_budget_best_first(self) -> None:
        """Turns without a word of the question stay out, and a budget is never exceeded."""
        words = Bm25(TURNS)

        assert words.fill("medicine", budget_tokens=800) == ["en-1"]
        assert words.fill("medicine", budget_tokens=5) == []


class TestSystem:
    def test_a_demonstration_never_touches_yours(self) -> None:
        """What your shell says about databases, brokers, keys and directories is left out; the rest stays."""
        inherited = {
            "MEMORYOS_OWNER_URL": "postgresql://yours",
            "MEMORYOS_BROKER_URL": "redis://yours",
            "MEMORYOS_API_KEY": "mem_yours",
            "MEMORYOS_DATA_DIR": "/yours",
            "MEMORYOS_EMBEDDER": "hashing",
            "PATH": "/bin",
        }
        environment = system_environment(inherited)

        assert [value for value in environment.values() if "yours" in value] == []
        assert (environment["PATH"], environment["MEMORYOS_EMBEDDER"]) == ("/bin", "hashing")
        assert environment["MEMORYOS_LANGUAGE_MODEL"] == "extractive"
