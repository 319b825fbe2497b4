"""What is told in the words of a chat sets the same attributes; nothing is read into other people or a walk."""

import pytest

from memoryos_pipeline.domain.language import detect_language
from memoryos_pipeline.domain.statements_slots import Slot, find_slot, find_slots
from memoryos_pipeline.evaluation.corpus import LANGUAGES
from memoryos_pipeline.evaluation.corpus_phrases import Topic, load_phrases, render

ATTRIBUTES = {
    "drink": "drink", "car": "car", "commute": "commute", "residence": "residence", "employer": "employer",
    "occupation": "occupation", "favourite": "favourite|", "relationship": "relationship", "taste": "attitude|",
    "plan": "plan|", "habit": "habit|", "pet": "pet|", "allergy": "allergy|", "medication": "habit|", "study": "habit|",
}  # fmt: skip
"""The attribute that each topic of the phrases sets."""


def said(topic: Topic, sentences: tuple[str, ...], lang: str) -> list[tuple[Slot | None, str]]:
    """Return what is read from each sentence, with the value it names."""
    value, old = (*topic.values, "-", "-")[:2]
    names = {"v": value, "old": value if topic.kind == "reverse" else old}
    return [(find_slot(render(sentence, lang, names), lang), value) for sentence in sentences]


def is_right(slot: Slot | None, value: str, name: str, *, negated: bool = False) -> bool:
    """Tell whether the attribute of a topic was set to a value."""
    if slot is None or not slot.attribute.startswith(ATTRIBUTES[name]) or slot.negated != negated:
        return False
    return value == "-" or value.casefold().removeprefix("the ") in f"{slot.attribute} {slot.value}"


class TestRead:
    @pytest.mark.parametrize("lang", LANGUAGES)
    def test_nine_in_ten_ways_to_say_what_is_so_are_read(self, lang: str) -> None:
        """Plain and polite, spoken and short, by every language alike."""
        topics = load_phrases(lang, "development").topics
        read = [
            is_right(slot, value, name)
            for name, topic in topics.items()
            if name in ATTRIBUTES
            for slot, value in said(topic, topic.states, lang)
        ]
        assert sum(read) >= 0.9 * len(read)

    @pytest.mark.parametrize("lang", LANGUAGES)
    def test_most_ways_to_change_it_are_read(self, lang: str) -> None:
        """A new value, or the denial; what a sentence only calls over is ended beside what is known."""
        topics = load_phrases(lang, "development").topics
        read = [
            is_right(slot, value, name, negated=topic.kind == "reverse")
            for name, topic in topics.items()
            if name in ATTRIBUTES
            for slot, value in said(topic, topic.changes, lang)
        ]
        assert sum(read) >= 0.75 * len(read)

    @pytest.mark.parametrize("lang", LANGUAGES)
    def test_what_is_said_beside_sets_next_to_nothing(self, lang: str) -> None:
        """Others, questions, visits and what was long ago."""
        topics = load_phrases(lang, "development").topics
        read = [
            is_right(slot, value, name)
            for name, topic in topics.items()
            if name in ATTRIBUTES and topic.kind == "replace"
            for slot, value in said(topic, topic.beside, lang)
        ]
        assert sum(read) <= 0.05 * len(read)


class TestNormalize:
    @pytest.mark.parametrize(
        ("lang", "text"),
        [
            ("ko", "최근에 검도를 시작했어요."), ("ko", "오월부터 검도 배우기 시작했어."),
            ("ja", "道場で剣道を習っています。"), ("zh", "我上周停用阿司匹林了。"),
        ],
    )  # fmt: skip
    def test_when_and_where_are_no_part_of_the_thing(self, lang: str, text: str) -> None:
        """What is told again with another time or place is the same thing."""
        slot = find_slot(text, lang)
        assert slot is not None
        assert slot.attribute in {"habit|검도", "habit|剣道", "habit|阿司匹林"}


class TestLeaveOut:
    @pytest.mark.parametrize(
        "text",
        [
            "Definitely adding it to my list.", "That gave me a lot of hope.", "I'm off to bake some cakes.",
            "Fingers crossed it works out.", "I worked hard to get better.", "Lots has gone down since then.",
            "今天我去了公园散步，感觉很舒服。", "我一直在考虑要不要换一份工作。", "我感觉很迷茫。",
        ],
    )  # fmt: skip
    def test_everyday_talk_sets_nothing(self, text: str) -> None:
        """A walk is no employer, hope is no habit and a list is no trade."""
        assert find_slots(text, detect_language(text)) == ()
