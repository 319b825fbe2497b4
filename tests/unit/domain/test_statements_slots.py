"""What a statement sets is found by the kind of phrase, in four languages, and nobody else's life is taken for it."""

import pytest

from memoryos_pipeline.domain.statements import bounded_sentences, states_something
from memoryos_pipeline.domain.statements_slots import find_slot, find_slots

FOUND = [
    ("en", "I fix old radios for a living.", "occupation", "fix old radios"),
    ("en", "I teach chemistry at a secondary school.", "occupation", "teach chemistry"),
    ("ja", "札幌の高校で数学を教えています。", "occupation", "数学を教えて"),
    ("ja", "私は通訳として働いています。", "occupation", "通訳"),
    ("ja", "似顔絵を描いて生計を立てています。", "occupation", "似顔絵を描い"),
    ("ko", "저는 가구를 고치는 사람이에요.", "occupation", "가구를 고치는 사람"),
    ("ko", "저는 통역사로 일하고 있어요.", "occupation", "통역사"),
    ("ko", "그림을 그려서 먹고살아요.", "occupation", "그림을 그려서"),
    ("zh", "我靠修钟表为生。", "occupation", "修钟表"),
    ("zh", "我自己当老板。", "occupation", "老板"),
    ("zh", "我在一所中学教化学。", "occupation", "教化学"),
    ("en", "We moved from Leeds to Bristol in March.", "residence", "bristol"),
    ("en", "I settled down in Porto.", "residence", "porto"),
    ("en", "We bought a small house in Leeds.", "residence", "leeds"),
    ("ja", "横浜にある古い家を契約しました。", "residence", "横浜"),
    ("ko", "강릉에 있는 작은 집을 계약했어요.", "residence", "강릉"),
    ("ko", "대구 수성동 아파트인데, 조용해요.", "residence", "대구 수성동"),
    ("zh", "我们在杭州定居了。", "residence", "杭州"),
    ("zh", "我们在杭州租了一套公寓。", "residence", "杭州"),
    ("ko", "안녕하세요, 민서예요.", "name", "민서"),
    ("zh", "你好，我是阿梅。", "name", "阿梅"),
    ("en", "We're flying to Oslo in June.", "plan|oslo", "planned"),
    ("en", "We called off the trip to Oslo.", "plan|oslo", "dropped"),
    ("en", "I decided against the motorbike.", "plan|motorbike", "dropped"),
    ("ja", "六月に沖縄へ行く予定です。", "plan|沖縄", "planned"),
    ("ja", "台風で沖縄はあきらめました。", "plan|沖縄", "dropped"),
    ("ja", "母が来るので、沖縄は延期しました。", "plan|沖縄", "dropped"),
    ("ja", "バイクはやめて自転車にしました。", "plan|バイク", "dropped"),
    ("ko", "6월에 베트남에 갈 거예요.", "plan|베트남", "planned"),
    ("ko", "베트남은 내년으로 미뤘어요.", "plan|베트남", "dropped"),
    ("zh", "我们打算去云南旅游。", "plan|云南", "planned"),
    ("zh", "云南我们不去了。", "plan|云南", "dropped"),
]
ANOTHERS = [
    ("en", "My brother fixes radios for a living."),
    ("en", "She bought a small house in Leeds."),
    ("ja", "妹は札幌の高校で数学を教えています。"),
    ("ja", "友人は横浜にある家を契約しました。"),
    ("ko", "제 친구는 강릉에 있는 집을 계약했어요."),
    ("ko", "여동생은 통역사로 일하고 있어요."),
    ("ko", "안녕하세요, 학생이에요."),
    ("zh", "我妹妹靠修钟表为生。"),
    ("zh", "他们在杭州定居了。"),
    ("zh", "你好，我是老师。"),
]
OWN = {"안녕하세요, 학생이에요.": {"occupation"}, "你好，我是老师。": {"occupation"}}
"""What these do say of the speaker."""


class TestFindSlot:
    @pytest.mark.parametrize(("lang", "text", "attribute", "value"), FOUND)
    def test_a_kind_of_phrase_sets_an_attribute(self, lang: str, text: str, attribute: str, value: str) -> None:
        """Work, home, name and plans are recognised however they are put."""
        slot = find_slot(text, lang)
        assert slot is not None
        assert (slot.attribute.partition(" ")[0], slot.value) == (attribute, value)

    @pytest.mark.parametrize(("lang", "text"), ANOTHERS)
    def test_another_persons_life_sets_no_name_work_or_home(self, lang: str, text: str) -> None:
        """Nothing of the speaker's is replaced by what a sister or a friend does; nor is a job taken for a name."""
        attributes = {slot.attribute for slot in find_slots(text, lang)}
        assert attributes & {"residence", "name", "occupation"} <= OWN.get(text, set())


class TestFindSlots:
    @pytest.mark.parametrize(
        ("lang", "before", "after", "thing"),
        [
            ("en", "I don't eat meat or fish.", "I eat fish again.", "fish"),
            ("ja", "肉も魚も食べません。", "魚は食べることにしました。", "魚"),
            ("ko", "고기도 생선도 안 먹어요.", "이제 생선하고 조개는 먹기로 했어요.", "생선"),
            ("zh", "我不吃肉和鱼。", "我现在开始吃鱼了。", "鱼"),
            ("en", "I'm a vegetarian.", "I eat fish again.", "fish"),
            ("ja", "ベジタリアンです。", "魚は食べることにしました。", "魚"),
            ("ko", "저는 채식주의자예요.", "생선은 먹기로 했어요.", "생선"),
            ("zh", "我一直吃素。", "我现在开始吃鱼了。", "鱼"),
        ],
    )
    def test_things_told_together_or_implied_can_be_contradicted(
        self, lang: str, before: str, after: str, thing: str
    ) -> None:
        """Each thing of a list is found, and what a diet rules out."""
        first, second = ({slot.attribute: slot.value for slot in find_slots(text, lang)} for text in (before, after))
        assert (first[f"eats|{thing}"], second[f"eats|{thing}"]) == ("no", "yes")


class TestStates:
    @pytest.mark.parametrize(
        "text",
        [
            "I'll try that on Sunday.", "Okay, I'll give it a go tomorrow.", "I have some news today.",
            "それなら明日やってみます。", "今日は嬉しいお知らせがあります。",
            "그럼 오늘 한번 써 볼게요.", "오늘은 슬픈 이야기를 할게요.",
            "好，那我今晚试试。", "我有个好消息要告诉你。",
        ],
    )  # fmt: skip
    def test_taking_up_advice_states_nothing(self, text: str) -> None:
        """Out of its conversation such a sentence means nothing."""
        assert [each.text for each in bounded_sentences(text) if states_something(each)] == []

    @pytest.mark.parametrize(
        "text",
        [
            "I'll try the swimming club on Sunday.", "来月から水泳を習ってみます、市民プールで。",
            "내일부터 수영 학원에 다녀 볼게요.", "我明天去试试新开的游泳馆。",
        ],
    )  # fmt: skip
    def test_what_names_a_thing_still_does(self, text: str) -> None:
        """A plan with something in it is a statement."""
        assert all(states_something(each) for each in bounded_sentences(text))
