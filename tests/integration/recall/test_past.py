"""A question to the past finds what could be found then, whatever became of it since."""

from datetime import datetime, timedelta

from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.recall.past import PastQuestion, bm25, search_past
from memoryos_pipeline.stages.forget import forget
from memoryos_pipeline.store.sweeps import owe_due
from tests.conftest import Stack
from tests.integration.stages.cold import START, Cold


def _ask(cold: Cold, query: str, day: float, *, kinds: tuple[str, ...] = ("knowledge",)) -> list[tuple[str, int]]:
    at: datetime = START + timedelta(days=day)
    asked = PastQuestion("maya", "companion", query, at, kinds=kinds)
    return [
        (result.content, len(result.source_turns)) for result in search_past(cold.parts, cold.tenant_id, asked).results
    ]


class TestSearchPast:
    def test_each_moment_answers_with_its_own_truth(self, stack: Stack) -> None:
        """Seoul, then Busan, then Busan is forgotten: asked as of each day, the answer is that day's."""
        cold = Cold(stack)
        cold.at(0)
        cold.page("residence=Seoul", "likes tennis")
        cold.work()
        cold.at(10)
        cold.page("residence=Busan", day=10)
        cold.work()
        cold.at(200)
        owe_due(stack.ledger_database, name="forget")
        for lease in cold.claim(WorkKind.FORGET):
            forget(cold.parts, lease)

        assert _ask(cold, "residence", -1) == []
        assert _ask(cold, "residence", 5) == [("Maya: the residence is Seoul", 1)]
        assert _ask(cold, "residence", 20) == [("Maya: the residence is Busan", 1)]
        assert _ask(cold, "residence", 201) == []
        assert _ask(cold, "tennis", 5, kinds=("turn",)) == [("likes tennis", 1)]

    def test_looking_back_reinforces_nothing(self, stack: Stack) -> None:
        """A question to the past is no use of what it finds."""
        cold = Cold(stack)
        cold.at(0)
        cold.page("residence=Seoul")
        cold.work()
        _ask(cold, "residence", 1)

        assert cold.rows("select count(*) from memoryos.access_event") == [(0,)]


class TestBm25:
    def test_rare_words_weigh_more_and_nothing_shared_is_nothing(self) -> None:
        """The text with the rare term is first; without texts there is no score."""
        scores = bm25(["tennis", "anna"], [["anna", "slept"], ["anna", "tennis"], ["rain"], ["anna"]])

        assert scores[1] > scores[3] > scores[2] == 0.0
        assert bm25(["tennis"], []) == []
