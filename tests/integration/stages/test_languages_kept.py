"""A memory speaks the language of what was said, with every name as it was written."""

import pytest

from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.pipeline import STAGES
from tests.builders import rows
from tests.conftest import Stack
from tests.integration.stages.cold import Cold
from tests.lifecycle_builders import Walk

NAMED = {
    "ja": ("田中健さんとトヨタの工場で働いています。", "型番はXJ-900です。", "私は名古屋に住んでいます。"),
    "ko": ("저는 김민수 씨와 네이버에서 일해요.", "모델은 QX-12예요.", "저는 부산에 살아요."),
    "zh": ("我和林小雨在华为工作。", "型号是RT-7。", "我住在成都。"),
    "en": ("I work with Siobhán at Nokia.", "The model is ZK-40.", "I live in Galway."),
}
SWITCHED = ("我住在成都。", "我养了一只猫。", "我对花生过敏。", "I work at a bakery.")
UNRELATED = ("猫を飼い始めた", "이사를 갔다", "他换了工作", "Я переехал в Казань")
SHARING_LATIN = ("v2が出た", "v2を待つ", "v2は遅い", "v2に戻す")
KINDS = (WorkKind.SUMMARIZE, WorkKind.EMBED, WorkKind.SEGMENT, WorkKind.DISTILL, WorkKind.MERGE)
KNOWN = """
    select k.lang, k.content from memoryos.knowledge k join memoryos.scope s using (tenant_id, scope_id)
     where s.user_id = :user and k.status = 'active' order by k.turn_at
"""
PAGES = """
    select p.lang, p.summary from memoryos.page p join memoryos.scope s using (tenant_id, scope_id)
     where s.user_id = :user
"""


@pytest.fixture
def walk(stack: Stack) -> Walk:
    """A memory that learns by the rules."""
    embedder = HashingEmbedder()
    return Walk(stack, Policy(distill_when="sealed"), embedder, ExtractiveModel(embedder))


def _tell(walk: Walk, user: str, *said: str, conversation: str = "c1") -> None:
    walk.seal(*(each for one in said for each in (one, "…")), user_id=user, conversation=conversation)
    while any(walk.run(STAGES[kind], kind) for kind in KINDS):
        pass


class TestKeep:
    def test_words_and_names_stay_as_they_were_said(self, walk: Walk) -> None:
        """Statements and summaries quote their turns: people, firms and product codes in their own script."""
        for lang, said in NAMED.items():
            _tell(walk, lang, *said)
            known = rows(walk.stack, KNOWN, user=lang)
            assert {each for each, _ in known} == {lang}
            assert all(any(sentence in content for sentence in said) for _, content in known)
            assert any(said[2] in content for _, content in known)
            for page_lang, summary in (row for row in rows(walk.stack, PAGES, user=lang) if row[0] != "und"):
                assert page_lang == lang
                assert any(sentence in summary for sentence in said)

    def test_who_switches_is_kept_in_both(self, walk: Walk) -> None:
        """From Chinese into English in one talk: each statement in its own, the page in what most of it is."""
        _tell(walk, "maya", *SWITCHED)
        known = rows(walk.stack, KNOWN, user="maya")

        assert [(lang, content.partition(": ")[2]) for lang, content in known] == [
            ("zh", SWITCHED[0]), ("zh", SWITCHED[1]), ("zh", SWITCHED[2]), ("en", SWITCHED[3])
        ]  # fmt: skip
        assert {lang for lang, _ in rows(walk.stack, PAGES, user="maya")} <= {"zh", "en"}

    def test_a_statement_that_is_replaced_takes_the_language_of_its_turn(self, walk: Walk) -> None:
        """Nothing is translated: known in Chinese, changed in English, the live one is English, the old Chinese."""
        _tell(walk, "maya", "我住在成都。")
        _tell(walk, "maya", "I moved to Galway.", conversation="c2")
        query = "select lang, status, content from memoryos.knowledge order by turn_at, version"
        old, new = rows(walk.stack, query)

        assert (old[:2], new[:2]) == (("zh", "superseded"), ("en", "active"))
        assert ("我住在成都。" in old[2], "I moved to Galway." in new[2]) == (True, True)


class TestCount:
    def test_four_statements_of_any_script_are_four(self, stack: Stack) -> None:
        """Unrelated ones in four scripts, and four in Japanese that share only Latin letters: none is lost."""
        cold = Cold(stack)
        for said in (UNRELATED, SHARING_LATIN):
            for day, one in enumerate(said):
                cold.page(one, day=day, conversation=one)
                cold.work()

        assert set(cold.live()) == {*UNRELATED, *SHARING_LATIN}
