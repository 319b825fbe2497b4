"""Records of one kind on several days stay several: each is found by its day, and the last one is the present."""

from datetime import datetime, timedelta

from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.pipeline import STAGES
from memoryos_pipeline.recall.search import search
from tests.builders_recall import ask, recall_parts
from tests.conftest import Stack
from tests.lifecycle_builders import Walk

MONTHS = {
    "en": (("On 1 March I weighed 71 kg.", "On 1 April I weighed 69 kg.", "On 1 May I weighed 70 kg."),
           "What did Maya weigh in March?"),
    "ja": (("3月1日の体重は71キロでした。", "4月1日の体重は69キロでした。", "5月1日の体重は70キロでした。"),
           "3月のMayaの体重は?"),
    "ko": (("3월 1일에 몸무게가 71킬로였어요.", "4월 1일에 몸무게가 69킬로였어요.", "5월 1일에 몸무게가 70킬로였어요."),
           "3월에 Maya 몸무게는?"),
    "zh": (("3月1日我的体重是71公斤。", "4月1日我的体重是69公斤。", "5月1日我的体重是70公斤。"),
           "3月Maya的体重是多少?"),
}  # fmt: skip
START = datetime.fromisoformat("2026-03-01T20:00:00+09:00")
KINDS = (WorkKind.SUMMARIZE, WorkKind.EMBED, WorkKind.SEGMENT, WorkKind.DISTILL, WorkKind.MERGE)


class TestRecords:
    def test_each_month_answers_for_itself(self, stack: Stack) -> None:
        """Asked about March March's comes first, and all three are there, live and dated."""
        embedder = HashingEmbedder()
        walk = Walk(stack, Policy(distill_when="sealed"), embedder, ExtractiveModel(embedder))
        for lang, (said, _) in MONTHS.items():
            for months, one in enumerate(said):
                at = START + timedelta(days=31 * months)
                walk.seal(one, start=at, conversation=f"c{months}", user_id=lang)
        while any(walk.run(STAGES[kind], kind) for kind in KINDS):
            pass
        now = START + timedelta(days=70)
        for lang, (_, question) in MONTHS.items():
            asked = ask(question, user_id=lang, now=now, kinds=("turn", "knowledge"))
            found = [each.content for each in search(recall_parts(stack), stack.tenant_id, asked).results]

            assert "71" in found[0], lang
            assert {kilos for kilos in ("71", "69", "70") for each in found if kilos in each} == {"71", "69", "70"}
