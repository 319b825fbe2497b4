"""Filters are a gate before every limit: what passes is found, nothing else, in the order it had without them."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient
from typer.testing import CliRunner

from memoryos_pipeline.api.app import create_app
from memoryos_pipeline.cli.main import app
from memoryos_pipeline.client.http import MemoryClient
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.recall import gather as gathering
from memoryos_pipeline.recall.context import build_context
from memoryos_pipeline.recall.filters import Filters
from memoryos_pipeline.recall.past import PastQuestion, search_past
from memoryos_pipeline.recall.results import Result
from memoryos_pipeline.recall.search import search
from memoryos_pipeline.store.approximate import build_index
from memoryos_pipeline.store.tenants import mint_key
from memoryos_pipeline.store.vectors import remove_index_rows
from tests.builders import set_clock
from tests.builders_recall import START, FailingEmbedder, ask, know, recall_parts, remember, say, summarize
from tests.conftest import Stack
from tests.serving import serving

WORDS = ("harbour", "violin", "curtain", "銭湯", "자전거", "图书馆", "market", "train", "soup", "letter", "garden")
SPEAKERS = ("Maya", "Companion", "Zoé")
QUESTION = "the violin and the market, 銭湯, 자전거, 图书馆"
DAY = timedelta(days=1)
ARCHIVE = text("""
    update memoryos.page set tier = 'archived', extracted_at = memoryos.now()
     where tenant_id = :tenant_id and page_id = any(:ids)
""")


@dataclass
class Memory:
    """Three conversations a month apart, of turns, pages and statements; the last one is hot."""

    stack: Stack
    tiers: dict[UUID, str] = field(default_factory=dict)
    pages: dict[UUID, tuple[str, datetime, datetime]] = field(default_factory=dict)

    def passes(self, result: Result, filters: Filters) -> bool:
        """Tell by the result itself whether it passes."""
        first = last = result.event_at or result.at
        where = result.conversation_id
        if result.kind == "page":
            where, first, last = self.pages[result.owner_id]
        tier = "cold" if result.kind == "knowledge" else self.tiers[result.owner_id]
        return (
            (filters.since is None or last >= filters.since)
            and (filters.until is None or first < filters.until)
            and (filters.tiers is None or tier in filters.tiers)
            and filters.conversation_id in {None, where}
            and (filters.speaker is None or result.speaker.casefold() == filters.speaker.casefold())
        )


def build(stack: Stack, *, turns: int = 80, page_turns: int = 4) -> Memory:
    """Fill a memory: every second page is archived, and statements tell of events around their turns."""
    memory, chance = Memory(stack), random.Random(11)
    for number, name in enumerate(("c1", "c2", "c3")):
        start = START + number * 30 * DAY
        lines = [(chance.choice(SPEAKERS), " ".join(chance.choices(WORDS, k=5))) for _ in range(turns)]
        record = say if name == "c3" else remember
        ids = record(stack, *lines, conversation=name, start=start)
        for place, turn in enumerate(ids):
            is_archived = place // page_turns % 2
            memory.tiers[turn] = "hot" if name == "c3" else "archived" if is_archived else "warm"
        if name != "c3":
            for first in range(1, turns, page_turns):
                said = f"page about {chance.choice(WORDS)} {name} {first}"
                page = summarize(stack, said, first=first, last=first + page_turns - 1, conversation=name)
                memory.tiers[page] = "archived" if (first // page_turns) % 2 else "warm"
                memory.pages[page] = (name, START, START)
    for seq in range(1, turns, page_turns):  # a statement is from a page, and these have one
        content = f"statement {seq} about {chance.choice(WORDS)}, unlike whatever else somebody remembers"
        know(stack, content, seq=seq, actor=SPEAKERS[seq % 3], event_at=START + seq * DAY)
    archive(memory)
    return memory


def archive(memory: Memory) -> None:
    """Archive the pages that are to be, as the stage does."""
    stack = memory.stack
    ids = [page for page in memory.pages if memory.tiers[page] == "archived"]
    with stack.app.transaction(stack.tenant_id) as connection:
        connection.execute(ARCHIVE, {"tenant_id": stack.tenant_id, "ids": ids})
        remove_index_rows(connection, stack.tenant_id, "page", ids)


CONDITIONS: tuple[dict[str, Any], ...] = (
    {"since": START + 20 * DAY},
    {"until": START + 15 * DAY},
    {"since": START + 5 * DAY, "until": START + 31 * DAY},
    {"tiers": ("hot",)},
    {"tiers": ("warm",)},
    {"tiers": ("archived", "cold")},
    {"conversation_id": "c2"},
    {"speaker": "zoÉ"},
    {"speaker": "nobody"},
    {"conversation_id": "c1", "speaker": "Maya", "tiers": ("warm", "cold"), "until": START + 12 * DAY},
    {"conversation_id": "c1", "since": START + timedelta(minutes=7), "until": START + timedelta(minutes=11)},
)

LARGE = {"WHOLE_SCOPE": 12, "DENSE_LIMIT": 30, "LEXICAL_LIMIT": 30}
SIZES: tuple[dict[str, int], ...] = ({}, LARGE, {**LARGE, "EXACT_UP_TO": 20})
"""A memory that is scored whole, one of which every vector is compared, and one whose vectors are walked."""


class TestSearch:
    def test_it_equals_brute_force(self, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each filter and their combinations leave of the whole ranking what passes, in its order and by its score.

        In a memory too large to be scored whole, by an approximate index, and without vectors, min(k, matching) remain.
        """
        memory, parts = build(stack), recall_parts(stack)
        set_clock(stack, START + 60 * DAY)  # what fades between two searches is scored anew
        build_index(stack.owner, 1, dimensions=HashingEmbedder().dimensions)
        everything = search(parts, stack.tenant_id, ask(QUESTION, limit=10_000)).results
        assert len(everything) > 270
        for conditions in CONDITIONS:
            filters = Filters(**conditions)
            wanted = [each for each in everything if memory.passes(each, filters)]
            assert bool(wanted) == (filters.speaker != "nobody")
            for limit in (5, 10_000):
                found = search(parts, stack.tenant_id, ask(QUESTION, limit=limit, filters=filters)).results

                assert [each.owner_id for each in found] == [each.owner_id for each in wanted[:limit]], conditions
                assert [each.score for each in found] == pytest.approx([each.score for each in wanted[:limit]])
                assert all(sum(each.signals.values()) == pytest.approx(each.score, abs=1e-9) for each in found)
            for limits in SIZES:
                with monkeypatch.context() as patched:
                    for name, value in limits.items():
                        patched.setattr(gathering, name, value)
                    for either in (parts, recall_parts(stack, embedder=FailingEmbedder())):
                        found = search(either, stack.tenant_id, ask(QUESTION, limit=25, filters=filters)).results

                        assert len(found) == min(25, len(wanted)), conditions
                        assert {each.owner_id for each in found} <= {each.owner_id for each in wanted}

    def test_history_passes_by_its_own_date(self, stack: Stack) -> None:
        """An earlier version is found in its time though the one in force is of another; and kinds stay apart."""
        remember(stack, ("Maya", "I moved to Osaka."), ("Maya", "I moved to Kyoto."))
        now = know(stack, "Maya's home is in Kyoto near the river.", seq=2, version=2, event_at=START + 9 * DAY)
        old = know(
            stack, "Maya's home is in Osaka near the castle.", seq=1, lineage_id=now, superseded_by=now,
            event_at=START + DAY,
        )  # fmt: skip

        def found(**options: Any) -> set[UUID]:
            filters = Filters(until=START + 5 * DAY)
            asked = ask("Where is home?", limit=50, kinds=("knowledge",), filters=filters, **options)
            return {each.owner_id for each in search(recall_parts(stack), stack.tenant_id, asked).results}

        assert found() == set()
        assert found(include_history=True) == {old}

    def test_other_profiles_rank_what_passes(self, stack: Stack) -> None:
        """A profile that keeps the seven nearest passages keeps the seven nearest of those that pass."""
        memory, parts = build(stack), recall_parts(stack)
        filters = Filters(conversation_id="c2", speaker="Maya")
        found = search(parts, stack.tenant_id, ask(QUESTION, limit=50, profile="bai_lab", filters=filters)).results

        assert len(found) == 7
        assert all(memory.passes(each, filters) for each in found)


@pytest.fixture
def client(stack: Stack) -> Iterator[TestClient]:
    """An application over a short past of two conversations."""
    remember(stack, ("Maya", "The spare key is under the pot."), ("Companion", "The spare key, noted."))
    remember(stack, ("Maya", "The spare key hangs in the shed."), conversation="c2", start=START + 3 * DAY)
    know(stack, "Maya keeps a spare key", seq=1, event_at=START + 9 * DAY)
    key = mint_key(stack.owner, stack.tenant_id, scopes=("ingest", "read"))
    with TestClient(create_app(recall_parts(stack)), headers={"authorization": f"Bearer {key}"}) as client:
        yield client


ASKED = {"user_id": "maya", "agent_id": "companion", "query": "Where is the spare key?"}


class TestRequest:
    def test_search_and_context_take_the_filters(self, client: TestClient) -> None:
        """Over HTTP a filter leaves what passes, and a context holds nothing else, neither recent turns nor profile."""

        def found(**filters: Any) -> list[str]:
            answer = client.post("/v1/search", json={**ASKED, "kinds": ["turn", "knowledge"], **filters}).json()
            return sorted(result["content"] for result in answer["results"])

        assert found(conversation_id="c2") == ["The spare key hangs in the shed."]
        assert found(speaker="companion") == ["The spare key, noted."]
        assert found(since="2026-03-10T18:00:00+09:00", until="2026-03-11T00:00:00Z") == ["Maya keeps a spare key"]
        assert found(tiers=["hot"]) == []
        context = client.post("/v1/context", json={**ASKED, "only_conversation_id": "c2"}).json()
        assert [item["content"] for item in context["items"]] == ["The spare key hangs in the shed."]

    def test_the_past_is_filtered_alike(self, client: TestClient, stack: Stack) -> None:
        """A search as of a moment takes the same filters."""
        with stack.app.transaction(stack.tenant_id) as connection:
            now = connection.execute(text("select memoryos.now()")).scalar_one()
        asked = PastQuestion(
            "maya", "companion", "spare key", now, filters=Filters(speaker="maya", conversation_id="c2")
        )
        found = search_past(recall_parts(stack), stack.tenant_id, asked).results

        assert [each.content for each in found] == ["The spare key hangs in the shed."]

    def test_what_cannot_be_is_refused(self, client: TestClient) -> None:
        """A moment without an offset, an empty span, an unknown tier or a blank name is refused, and named."""
        since = "2026-03-01T00:00:00Z"
        refused: tuple[tuple[str, object], ...] = (
            ("since", "2026-03-01"), ("until", "yesterday"), ("until", "2026-03-01T00:00:00Z"), ("tiers", ["lukewarm"]),
            ("tiers", []), ("speaker", " "), ("conversation_id", ""),
        )  # fmt: skip
        for name, value in refused:
            for path in ("/v1/search", "/v1/context"):
                answer = client.post(path, json={**ASKED, "since": since, name: value})

                assert answer.status_code == 422, name
                assert answer.json()["error"]["field"].startswith(name)


class TestCommand:
    def test_the_sdk_and_the_commands_take_them(self, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
        """The SDK takes a datetime, the commands take options; a moment without an offset ends with a sentence."""
        remember(stack, ("Maya", "The kettle is blue."), ("Companion", "The kettle, noted."))
        remember(stack, ("Maya", "The kettle broke."), conversation="c2", start=START + 3 * DAY)
        key = mint_key(stack.owner, stack.tenant_id, scopes=("read",))
        with serving(recall_parts(stack)) as url:
            monkeypatch.setenv("MEMORYOS_API_URL", url)
            monkeypatch.setenv("MEMORYOS_API_KEY", key)
            with MemoryClient(url, key) as client:
                found = client.search("kettle", user_id="maya", agent_id="companion", since=START + DAY)["results"]
            who = ("kettle", "--user", "maya", "--agent", "companion")
            listed = CliRunner().invoke(app, ["search", *who, "--speaker", "maya", "--conversation", "c1", "--json"])
            told = CliRunner().invoke(app, ["context", *who, "--conversation", "c1", "--until", "2026-03-01T09:00:30Z"])
            refused = CliRunner().invoke(app, ["search", *who, "--since", "2026-03-01"])

        assert [result["content"] for result in found] == ["The kettle broke."]
        assert [result["content"] for result in json.loads(listed.stdout.splitlines()[-1])["results"]] == [
            "The kettle is blue."
        ]
        assert "blue" in told.stdout
        assert "noted" not in told.stdout
        assert refused.exit_code == 1
        assert "since: must carry an offset from UTC" in refused.output


class TestContext:
    def test_pins_and_recent_turns_pass_too(self, stack: Stack) -> None:
        """With a filter, what is shown whatever is asked is shown only when it passes."""
        remember(stack, ("Maya", "The kettle is blue."))
        say(stack, ("Maya", "The kettle is broken."), conversation="c2")
        built = build_context(
            recall_parts(stack), stack.tenant_id, ask("What about the kettle?", filters=Filters(conversation_id="c1")),
            token_budget=500,
        )  # fmt: skip

        assert [item.result.content for item in built.items if item.result] == ["The kettle is blue."]
        assert "recent" not in built.sections
