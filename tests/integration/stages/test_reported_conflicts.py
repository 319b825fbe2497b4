"""What went wrong in other memories when statements met: contradictions, repeats, and whose words they were."""

from dataclasses import replace

import pytest

from memoryos_pipeline.domain.statements import bounded_sentences, states_something
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from tests.conftest import Stack
from tests.integration.stages.cold import Cold

LANGUAGES = ("en", "ja", "ko", "zh")
SPICY = {
    "en": ("I love spicy food.", "I can't stand spicy food any more."),
    "ja": ("辛い料理が大好きです。", "もう辛い料理は苦手です。"),
    "ko": ("매운 음식을 정말 좋아해요.", "이제 매운 음식은 싫어요."),
    "zh": ("我很喜欢吃辣的菜。", "我再也受不了辣的菜了。"),
}
CITIES = {
    "en": ("I moved to Osaka.", "I live in Fukuoka."),
    "ja": ("大阪に引っ越しました。", "福岡に住んでいます。"),
    "ko": ("오사카로 이사했어요.", "후쿠오카에 살아요."),
    "zh": ("我搬到大阪了。", "我住在福冈。"),
}


ADVICE = {
    "en": ("How could I get fitter?", "Try running every morning, half an hour before breakfast is enough.", "Thanks!"),
    "ja": (
        "どうすれば体力がつきますか?",
        "毎朝走ってみてください、朝食の前に三十分で十分です。",
        "ありがとうございます。",
    ),
    "ko": (
        "어떻게 하면 체력이 좋아질까요?",
        "매일 아침 달리기를 해 보세요, 식사 전에 삼십 분이면 충분해요.",
        "감사합니다!",
    ),
    "zh": ("怎样才能锻炼身体?", "每天早上跑步试试，早饭前半个小时就够了。", "谢谢！"),
}


@pytest.fixture
def cold(stack: Stack) -> Cold:
    """A memory that learns by the rules."""
    cold, embedder = Cold(stack), HashingEmbedder()
    cold.parts = replace(cold.parts, embedder=embedder, language_model=ExtractiveModel(embedder))
    return cold


def _told(cold: Cold, *pages: tuple[float, str], user: str = "maya") -> None:
    for day, said in pages:
        cold.page(said, day=day, user=user)
        cold.work()


def _held(cold: Cold, user: str, status: str) -> list[str]:
    query = """
        select k.content from memoryos.knowledge k join memoryos.scope s using (tenant_id, scope_id)
         where s.user_id = :user and k.status = any(cast(:statuses as text[])) order by k.turn_at
    """
    statuses = ["active"] if status == "live" else ["superseded", "closed"]
    return [str(row[0]).partition(": ")[2] for row in cold.rows(query, user=user, statuses=statuses)]


class TestContradict:
    def test_a_change_of_heart_leaves_one_truth_and_its_history(self, cold: Cold) -> None:
        """In four languages: the newer is live, the older readable; never neither."""
        for lang in LANGUAGES:
            before, after = SPICY[lang]
            _told(cold, (0, before), user=lang)
            _told(cold, (7, after), user=lang)
            assert (_held(cold, lang, "live"), _held(cold, lang, "over")) == ([after], [before])

    def test_a_mistake_that_is_retold_gains_nothing(self, cold: Cold) -> None:
        """What was taken back stays so, whatever the assistant recaps; the brother's is not the user's."""
        _told(cold, (0, "I react badly to penicillin."), (9, "No, that was my brother, I have no allergies."))
        cold.page(
            "What did I say?", "assistant> You said at first that you react badly to penicillin, I believe.", day=10
        )
        cold.work()
        live = _held(cold, "maya", "live")
        assert "I react badly to penicillin." not in live
        assert "No, that was my brother, I have no allergies." in live
        slots = cold.rows("select slot from memoryos.knowledge where status = 'active' and slot like '%penicillin%'")
        assert slots == []

    def test_dated_records_all_stand(self, cold: Cold) -> None:
        """Three weights on three days are three records."""
        said = [f"On 1 {month} I weighed {kilos} kg." for month, kilos in (("March", 71), ("April", 69), ("May", 70))]
        _told(cold, *((31.0 * n, one) for n, one in enumerate(said)))
        assert _held(cold, "maya", "live") == said

    def test_the_order_of_arrival_decides_nothing(self, cold: Cold) -> None:
        """In four languages: what is imported late is history, whatever came in first."""
        for lang in LANGUAGES:
            now, then = CITIES[lang]
            _told(cold, (700, now), (0, then), user=f"{lang} late")
            _told(cold, (0, then), (700, now), user=f"{lang} in order")
            for user in (f"{lang} late", f"{lang} in order"):
                assert (_held(cold, user, "live"), _held(cold, user, "over")) == ([now], [then])

    def test_namesakes_stay_two(self, cold: Cold) -> None:
        """Boss and sister of one name; neither ends nor supports what is known of the other."""
        said = ["My boss Mina hates coffee.", "My sister Mina loves coffee and lives in Busan.", "Mina moved to Seoul."]
        _told(cold, *((float(n), one) for n, one in enumerate(said)))
        assert _held(cold, "maya", "over") == []
        assert set(said[:2]) <= set(_held(cold, "maya", "live"))


class TestRepeat:
    def test_what_is_told_twice_is_one_row_with_two_sources(self, cold: Cold) -> None:
        """The same words, and the same in other words, in two talks."""
        for lang, again in (("en", "Home for me is Osaka."), ("ja", "自宅は大阪にあります。")):
            _told(cold, (0, CITIES[lang][0]), (3, CITIES[lang][0]), (6, again), user=lang)
            assert len(_held(cold, lang, "live")) == 1
        sources = cold.rows("select count(*) from memoryos.knowledge_source group by knowledge_id")
        assert sources == [(3,), (3,)]


class TestAttribute:
    def test_the_assistants_words_are_not_the_users(self, cold: Cold) -> None:
        """Its name, its studies and its advice are no facts of the user."""
        cold.page(
            "私の名前は健です。",
            "assistant> I'm Rin, a student from Nagoya; try running every morning.",
            "assistant> I live in Nagoya and I love ramen.",
        )  # fmt: skip
        cold.work()
        rows = cold.rows("select slot, slot_value from memoryos.knowledge where slot is not null")
        assert rows == [("maya|name", "健")]

    def test_advice_is_nobodys_habit(self, cold: Cold) -> None:
        """In four languages: what the assistant proposes and the user thanks for is no fact of the user's."""
        for lang, (asked, advice, thanks) in ADVICE.items():
            cold.page(asked, f"assistant> {advice}", thanks, user=lang)
        cold.work()

        assert {row[0] for row in cold.rows("select kind from memoryos.knowledge")} <= {"assistant_kb"}

    @pytest.mark.parametrize(
        "said",
        [
            "Would it be useful if I moved to Berlin?", "Imagine I am a surgeon.", "My colleague thinks I am rich.",
            "If I ever get a dog I'll call it Mochi.", "もし私がベルリンに住んでいたらどうでしょう。",
            "同僚は私が金持ちだと思っています。",
            "만약 제가 베를린에 산다면 어떨까요?", "동료는 내가 부자라고 생각해요.",
            "假如我住在柏林会怎么样？", "同事觉得我很有钱。",
        ],
    )  # fmt: skip
    def test_what_is_only_imagined_or_heard_is_no_fact(self, said: str) -> None:
        """Asked, supposed, another's opinion; in four languages."""
        assert not any(states_something(sentence) for sentence in bounded_sentences(said))

    def test_recalled_text_is_no_support(self, cold: Cold) -> None:
        """What a client feeds back of memory changes nothing, however often."""
        _told(cold, (0, "I live in Leeds."))
        before = cold.dump()["knowledge"]
        for day in (1, 2, 3):
            cold.page("recalled> I live in Leeds.", "recalled> I am a surgeon.", day=day)
            cold.work()
        assert cold.dump()["knowledge"] == before
