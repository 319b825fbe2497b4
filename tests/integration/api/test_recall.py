"""Recall over HTTP: what callers send, what they get, what is refused, and what is recorded afterwards."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from memoryos_pipeline.api.app import create_app
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.tenants import mint_key
from tests.builders_recall import FailingEmbedder, TalkingModel, know, recall_parts, remember
from tests.conftest import Stack

WHO = {"user_id": "maya", "agent_id": "companion"}
PAST = (
    ("Maya", "The spare key is under the blue flowerpot."),
    ("Companion", "I will remember that."),
    ("Maya", "The dentist moved to Elm Street."),
)


def client_of(stack: Stack, parts: Parts, *scopes: str) -> TestClient:
    """A client with a key of the stack's tenant."""
    key = mint_key(stack.owner, stack.tenant_id, scopes=scopes or ("ingest", "read"))
    return TestClient(create_app(parts), headers={"authorization": f"Bearer {key}"}, raise_server_exceptions=False)


@pytest.fixture
def client(stack: Stack) -> Iterator[TestClient]:
    """An application that recalls Maya's past."""
    remember(stack, *PAST)
    with client_of(stack, recall_parts(stack)) as client:
        yield client


def count(stack: Stack, table: str) -> int:
    """How many rows of the tenant a table has."""
    with stack.app.transaction(stack.tenant_id) as connection:
        rows: int = connection.execute(text(f"select count(*) from memoryos.{table}")).scalar_one()
        return rows


def accesses(stack: Stack) -> list[tuple[str, str]]:
    """(owner kind, cause) of every access event."""
    with stack.app.transaction(stack.tenant_id) as connection:
        return [tuple(row) for row in connection.execute(text("select owner_kind, cause from memoryos.access_event"))]


class TestSearch:
    def test_a_result_explains_itself(self, client: TestClient) -> None:
        """A result has content, speaker, date, source turns, and signals that sum to its score."""
        answer = client.post("/v1/search", json={**WHO, "query": "Where is the spare key?", "limit": 2}).json()
        best = answer["results"][0]

        assert len(answer["results"]) == 2
        assert answer["degraded"] == []
        assert best["content"] == PAST[0][1]
        assert (best["kind"], best["speaker"], best["conversation_id"]) == ("turn", "Maya", "c1")
        assert best["date"] == "2026-03-01T09:00:00+00:00"
        assert best["source_turns"] == [
            {"turn_id": best["id"], "client_turn_id": "t1", "conversation_id": "c1", "seq": 1}
        ]
        assert sum(best["signals"].values()) == pytest.approx(best["score"], abs=1e-9)

    def test_it_ranks_as_asked_and_says_who_did_not_say_it(self, client: TestClient) -> None:
        """A profile counts its own signals only; a question that names one speaker gets the doubt about that one."""
        asked = {**WHO, "query": "Did Maya hide the spare key?", "profile": "lexical"}
        answer = client.post("/v1/search", json=asked).json()
        nobody = client.post("/v1/search", json={**asked, "query": "the spare key"}).json()

        assert {name for result in answer["results"] for name in result["signals"]} == {"bm25"}
        assert answer["not_said"] == {"actor": "maya", "doubt": -1.0}
        assert nobody["not_said"] is None

    @pytest.mark.parametrize("when", [{}, {"as_of": "2100-01-01T00:00:00+00:00"}, {"profile": "mem0_v1"}])
    def test_a_least_score_takes_away_the_worse_ones(self, client: TestClient, when: dict[str, str]) -> None:
        """What is left is what was there, from the best down; a score nobody has leaves nothing."""
        asked = {**WHO, **when, "query": "Where did the dentist move, and where is the spare key?"}
        whole = client.post("/v1/search", json=asked).json()["results"]
        least = whole[1]["score"]
        kept = client.post("/v1/search", json={**asked, "min_score": least}).json()["results"]

        assert [each["content"] for each in kept] == [each["content"] for each in whole if each["score"] >= least]
        assert 2 <= len(kept) <= len(whole)
        assert client.post("/v1/search", json={**asked, "min_score": 1e6}).json()["results"] == []

    def test_what_was_posted_is_found_at_once(self, client: TestClient) -> None:
        """A turn is searchable as soon as its 202 was sent, and nothing ran in between."""
        turn = {
            **WHO, "conversation_id": "new", "client_turn_id": "1", "role": "user", "speaker": "Maya",
            "content": "箱根の温泉旅館を予約した", "occurred_at": "2026-03-02T10:00:00+09:00",
        }  # fmt: skip
        assert client.post("/v1/turns", json=turn).status_code == 202
        best = client.post("/v1/search", json={**WHO, "query": "温泉旅館"}).json()["results"][0]

        assert (best["content"], best["date"]) == (turn["content"], turn["occurred_at"])

    def test_an_unknown_user_has_no_results(self, client: TestClient) -> None:
        """Nothing known is an empty list."""
        answer = client.post("/v1/search", json={"user_id": "nobody", "query": "key"})

        assert (answer.status_code, answer.json()["results"]) == (200, [])

    def test_a_failing_embedder_is_said(self, stack: Stack) -> None:
        """Search goes on by words, and `degraded` names what was missing."""
        remember(stack, *PAST)
        with client_of(stack, recall_parts(stack, embedder=FailingEmbedder())) as client:
            answer = client.post("/v1/search", json={**WHO, "query": "spare key"}).json()

        assert answer["results"][0]["content"] == PAST[0][1]
        assert answer["degraded"][0].startswith("embedder_failed")

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"query": "   "}, "query"), ({"query": "\u200b\u3164"}, "query"), ({"query": "a\0b"}, "query"),
            ({"query": "x" * 20_000}, "query"), ({"query": 5}, "query"), ({"query": None}, "query"),
            ({"limit": 0}, "limit"), ({"limit": -1}, "limit"), ({"limit": 101}, "limit"),
            ({"user_id": ""}, "user_id"), ({"user_id": "a\nb"}, "user_id"), ({"agent_id": "\0"}, "agent_id"),
            ({"now": "2026-03-01T09:00:00"}, "now"), ({"now": "yesterday"}, "now"), ({"kinds": ["wish"]}, "kinds.0"),
            ({"kinds": []}, "kinds"), ({"top_k": 3}, "top_k"), ({"profile": "a-mem"}, "profile"),
        ],
    )  # fmt: skip
    def test_bad_input_names_the_field(self, client: TestClient, change: dict[str, Any], field: str) -> None:
        """What cannot be asked is a 422 with the field's name."""
        answer = client.post("/v1/search", json={**WHO, "query": "key", **change})

        assert (answer.status_code, answer.json()["error"]["field"]) == (422, field)

    def test_it_needs_a_key_that_may_read(self, stack: Stack) -> None:
        """A key without the scope `read` is refused."""
        with client_of(stack, recall_parts(stack), "ingest") as client:
            assert client.post("/v1/search", json={**WHO, "query": "key"}).status_code == 403

    def test_what_was_retrieved_is_recorded_afterwards(self, client: TestClient, stack: Stack) -> None:
        """Every result leaves one access event; the read itself owes no work and records no turn."""
        before = count(stack, "turn"), count(stack, "work"), count(stack, "event")
        client.post("/v1/search", json={**WHO, "query": "spare key", "limit": 2})

        assert accesses(stack) == [("turn", "retrieved")] * 2
        assert before == (count(stack, "turn"), count(stack, "work"), count(stack, "event"))

    def test_a_failed_record_costs_the_caller_nothing(self, client: TestClient, stack: Stack) -> None:
        """When access events cannot be written, the answer was sent anyway and the loss is logged."""
        with stack.owner.transaction(stack.tenant_id) as connection:
            connection.execute(text("revoke insert on memoryos.access_event from memoryos_app"))
        with capture_logs() as logs:
            answer = client.post("/v1/search", json={**WHO, "query": "spare key"})

        assert answer.status_code == 200
        assert "access_not_recorded" in [entry["event"] for entry in logs]
        assert accesses(stack) == []


class TestContext:
    def test_text_and_items_within_the_budget(self, client: TestClient, stack: Stack) -> None:
        """The text is prompt-ready, its items lead to source turns, and what was shown is recorded as injected."""
        know(stack, "Maya's dentist can be found on Elm Street now.", seq=3)
        answer = client.post("/v1/context", json={**WHO, "query": "Where is the dentist?", "token_budget": 200}).json()

        assert answer["tokens"] <= 200
        assert "Elm Street" in answer["context"]
        assert sum(answer["sections"].values()) == len(answer["items"])
        assert all(item["source_turns"] and item["line"] in answer["context"] for item in answer["items"])
        assert {cause for _, cause in accesses(stack)} == {"injected"}
        assert len(accesses(stack)) == len(answer["items"])

    @pytest.mark.parametrize("budget", [0, 49, 32_001])
    def test_a_budget_has_bounds(self, client: TestClient, budget: int) -> None:
        """A budget nothing fits into, or one no prompt has, is refused."""
        answer = client.post("/v1/context", json={**WHO, "query": "key", "token_budget": budget})

        assert (answer.status_code, answer.json()["error"]["field"]) == (422, "token_budget")


class TestAnswer:
    def test_both_turns_are_recorded(self, stack: Stack) -> None:
        """With a conversation, the question and the answer become its next two turns."""
        remember(stack, *PAST)
        model = TalkingModel("It is under the blue flowerpot.")
        with client_of(stack, recall_parts(stack, language_model=model)) as client:
            asked = {**WHO, "query": "Where is the spare key?", "conversation_id": "c1"}
            answer = client.post("/v1/answer", json=asked).json()
        with stack.app.transaction(stack.tenant_id) as connection:
            recorded = connection.execute(
                text("select seq, role, speaker, content from memoryos.turn where seq > 3 order by seq")
            ).all()

        assert (answer["answer"], answer["recorded"]) == ("It is under the blue flowerpot.", 2)
        assert "t1" in {turn["client_turn_id"] for source in answer["sources"] for turn in source["source_turns"]}
        assert [tuple(row) for row in recorded] == [
            (4, "user", "Maya", "Where is the spare key?"),
            (5, "assistant", "Companion", "It is under the blue flowerpot."),
        ]

    def test_without_a_generating_model_it_says_so(self, client: TestClient, stack: Stack) -> None:
        """No answer is made up: null, the reason, and the context; without a conversation nothing is recorded."""
        answer = client.post("/v1/answer", json={**WHO, "query": "Where is the spare key?"}).json()

        assert answer["answer"] is None
        assert "does not generate" in answer["reason"]
        assert "blue flowerpot" in answer["context"]
        assert (answer["recorded"], count(stack, "turn")) == (0, 3)

    def test_words_no_turn_can_hold_are_no_answer(self, stack: Stack) -> None:
        """NUL, a lone surrogate, nothing to see: the model failed, not the server, and nothing is recorded."""
        asked = {**WHO, "query": "Where is the spare key?", "conversation_id": "c1"}
        model = TalkingModel()
        with client_of(stack, recall_parts(stack, language_model=model)) as client:
            for said in ("a\0b", "\ud800", " \u200b"):
                model.reply = said
                answer = client.post("/v1/answer", json=asked)
                assert (answer.status_code, answer.json()["error"]["code"]) == (503, "model_unavailable")
        assert count(stack, "turn") == 0

    def test_record_false_records_nothing(self, stack: Stack) -> None:
        """A caller that keeps its own turns can ask without recording."""
        remember(stack, *PAST)
        with client_of(stack, recall_parts(stack, language_model=TalkingModel("Yes."))) as client:
            asked = {**WHO, "query": "Key?", "conversation_id": "c1", "record": False}
            assert client.post("/v1/answer", json=asked).json()["recorded"] == 0

        assert count(stack, "turn") == 3
