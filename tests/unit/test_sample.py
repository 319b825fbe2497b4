"""What the sample conversations promise to everyone who demonstrates or measures with them."""

import re
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from memoryos_pipeline.sample import sample_questions, sample_turns

TURNS = sample_turns()
QUESTIONS = sample_questions()
TURN_BY_ID = {turn["client_turn_id"]: turn for turn in TURNS}
LANGS = {"en", "ja", "ko", "zh"}
CATEGORIES = {"episodic", "semantic", "temporal", "conflict"}
TURN_KEYS = [
    "user_id",
    "agent_id",
    "conversation_id",
    "client_turn_id",
    "role",
    "speaker",
    "content",
    "occurred_at",
    "metadata",
]
QUESTION_KEYS = [
    "question_id",
    "lang",
    "category",
    "user_id",
    "agent_id",
    "question",
    "answer",
    "gold",
    "asked_at",
]

EN_STOP_TEXT = (
    "a about after again all am an and any are as at be been before but by can could did do does doing for"
    " from had has have he her here him his how i if in into is it its just me must my no not now of off on"
    " or our out over she should so some than that the their them then there these they this to too up us"
    " was we were what when where which who why will with would you your"
)
EN_STOP = set(EN_STOP_TEXT.split())
ZH_STOP = "什么|怎么|怎样|如何|哪一|哪种|哪天|哪个|哪里|哪|我们|你们|我|你|他|她|的|了|是|在|和|到|把|被|有|这|那|吗|呢"
KO_STOP = {
    "제가",
    "저는",
    "저랑",
    "우리",
    "어떤",
    "어떻게",
    "무엇",
    "언제",
    "어디",
    "뭐예요",
    "했어요",
    "지금",
    "요즘",
}
KO_PARTICLES = (
    "이었어요|이에요|인가요|에서는|에게|에서|으로|이랑|한테|부터|까지|예요|은|는|이|가|을|를|에|의|도|로|와|과|랑|만|요"
)
NAMES = {"maya", "companion", "陽斗", "지우", "阿林"}


def stem(word: str) -> str:
    """Cut the commonest English endings off."""
    return re.sub(r"(?<=\w{3})(ing|ed|es|s|ly|e)$", "", word)


def english_words(text: str) -> set[str]:
    """Give the stems of the content words of an English text."""
    words = re.findall(r"[a-z]+", re.sub(r"'\w+", "", text.lower()))
    return {stem(word) for word in words if word not in EN_STOP | NAMES}


def bigrams(runs: list[str]) -> set[str]:
    """Give every pair of neighbouring characters of the runs that are not names."""
    kept = [run for run in runs if run not in NAMES]
    return {left + right for run in kept for left, right in pairwise(run)}


def japanese_words(text: str) -> set[str]:
    """Give the bigrams of kanji runs and of katakana runs."""
    return bigrams(re.findall(r"[一-鿿々]{2,}|[ァ-ヴー]{2,}", text))


def korean_words(text: str) -> set[str]:
    """Give the bigrams of the Hangul words without their particles."""
    words = [word for word in re.findall(r"[가-힣]+", text) if word not in KO_STOP]
    bare = [re.sub(rf"(?<=[가-힣])({KO_PARTICLES})$", "", word) for word in words]
    return bigrams([word for word in bare if word not in KO_STOP])


def chinese_words(text: str) -> set[str]:
    """Give the bigrams of hanzi runs between function words."""
    return bigrams(re.findall(r"[一-鿿]{2,}", re.sub(ZH_STOP, " ", text)))


WORDS = {"en": english_words, "ja": japanese_words, "ko": korean_words, "zh": chinese_words}


def overlap(lang: str, question: str, golds: list[str]) -> float:
    """Give the share of the question's content words that its gold turns hold too."""
    asked = WORDS[lang](question)
    told = WORDS[lang](" ".join(golds))
    return len(asked & told) / len(asked)


def when(text: str) -> datetime:
    """Read an ISO 8601 instant."""
    return datetime.fromisoformat(text)


def by_conversation() -> dict[str, list[dict[str, Any]]]:
    """Group the turns by conversation, in the order of the file."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for turn in TURNS:
        groups[turn["conversation_id"]].append(turn)
    return groups


def test_there_are_enough_turns_in_four_balanced_languages() -> None:
    """At least 300 turns, each of the four languages with 20 to 30 % of them."""
    counts = Counter(turn["metadata"]["lang"] for turn in TURNS)
    assert len(TURNS) >= 300
    assert set(counts) == LANGS
    assert all(0.2 <= count / len(TURNS) <= 0.3 for count in counts.values())


def test_the_turns_span_more_than_a_hundred_days() -> None:
    """Memories have months to age in."""
    assert when(TURNS[-1]["occurred_at"]) - when(TURNS[0]["occurred_at"]) > timedelta(days=100)


def test_each_language_is_one_person_with_one_assistant() -> None:
    """A language is one user's, and everyone talks to the same agent."""
    assert len({(turn["user_id"], turn["metadata"]["lang"]) for turn in TURNS}) == 4
    assert len({turn["user_id"] for turn in TURNS}) == 4
    assert {row["agent_id"] for row in TURNS + QUESTIONS} == {"companion"}


def test_every_row_has_the_same_keys_in_the_same_order() -> None:
    """A reader may rely on the shape of a turn and of a question."""
    assert all(list(turn) == TURN_KEYS for turn in TURNS)
    assert all(list(question) == QUESTION_KEYS for question in QUESTIONS)


def test_turn_ids_number_their_conversation_in_order() -> None:
    """Turn ids are unique and count a conversation's turns from 01 without a gap."""
    for name, turns in by_conversation().items():
        expected = [f"{name}-{number:02d}" for number in range(1, len(turns) + 1)]
        assert [turn["client_turn_id"] for turn in turns] == expected


def test_turns_are_sorted_by_when_they_occurred() -> None:
    """The file is in the order lived, whatever the offset."""
    instants = [when(turn["occurred_at"]) for turn in TURNS]
    assert instants == sorted(instants)


def test_every_instant_carries_an_offset() -> None:
    """No time is left to the reader's own zone."""
    instants = [turn["occurred_at"] for turn in TURNS] + [row["asked_at"] for row in QUESTIONS]
    assert all(when(instant).utcoffset() is not None for instant in instants)


def test_every_conversation_is_a_short_sitting_of_one_person() -> None:
    """A conversation has 6 to 12 turns of one user within an hour."""
    for turns in by_conversation().values():
        lasted = when(turns[-1]["occurred_at"]) - when(turns[0]["occurred_at"])
        assert 6 <= len(turns) <= 12
        assert len({turn["user_id"] for turn in turns}) == 1
        assert timedelta(0) < lasted < timedelta(hours=1)


def test_user_and_assistant_take_turns() -> None:
    """The user opens every conversation, and nobody speaks twice in a row."""
    for turns in by_conversation().values():
        roles = [turn["role"] for turn in turns]
        assert roles == [("user", "assistant")[place % 2] for place in range(len(turns))]


def test_every_turn_says_something_new() -> None:
    """No content is blank, padded or said twice."""
    contents = [turn["content"] for turn in TURNS]
    assert all(content and content == content.strip() for content in contents)
    assert len(set(contents)) == len(contents)


def test_the_speaker_fits_the_role() -> None:
    """Only the assistant speaks as Companion."""
    assert all((turn["speaker"] == "Companion") == (turn["role"] == "assistant") for turn in TURNS)


def test_each_language_asks_twice_in_each_category() -> None:
    """32 questions: two of each of four categories in each of four languages."""
    counts = Counter((question["lang"], question["category"]) for question in QUESTIONS)
    assert counts == {(lang, category): 2 for lang in LANGS for category in CATEGORIES}


def test_question_ids_are_unique() -> None:
    """A question can be named."""
    assert len({question["question_id"] for question in QUESTIONS}) == len(QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["question_id"])
def test_gold_turns_are_the_users_own_past(question: dict[str, Any]) -> None:
    """One to three gold turns exist, belong to the question's user and precede the question."""
    golds = [TURN_BY_ID[gold] for gold in question["gold"]]
    assert 1 <= len(golds) == len(set(question["gold"])) <= 3
    assert {gold["user_id"] for gold in golds} == {question["user_id"]}
    assert {gold["metadata"]["lang"] for gold in golds} == {question["lang"]}
    assert all(when(gold["occurred_at"]) < when(question["asked_at"]) for gold in golds)


@pytest.mark.parametrize(
    "question",
    [question for question in QUESTIONS if question["category"] == "conflict"],
    ids=lambda question: question["question_id"],
)
def test_a_conflict_names_its_newest_truth_first(question: dict[str, Any]) -> None:
    """The first gold turn of a conflict question is the latest of them."""
    instants = [when(TURN_BY_ID[gold]["occurred_at"]) for gold in question["gold"]]
    assert instants[0] == max(instants)


def test_some_answers_were_given_by_the_assistant() -> None:
    """Each language has a question whose only gold turn is the assistant's."""
    alone = [row for row in QUESTIONS if {TURN_BY_ID[gold]["role"] for gold in row["gold"]} == {"assistant"}]
    assert {question["lang"] for question in alone} == LANGS


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["question_id"])
def test_a_question_is_asked_in_other_words(question: dict[str, Any]) -> None:
    """At most 40 % of the question's content words occur in its gold turns."""
    golds = [TURN_BY_ID[gold]["content"] for gold in question["gold"]]
    assert overlap(question["lang"], question["question"], golds) <= 0.4


@pytest.mark.parametrize(
    ("lang", "question", "gold", "share"),
    [
        ("en", "Which dogs bark?", "My dog barked.", 1.0),
        ("en", "Which cats bark?", "My dog barked.", 0.5),
        ("ja", "望遠鏡はどこですか", "望遠鏡を買った", 1.0),
        ("ko", "학교에서 무엇", "학교가 좋다", 1.0),
        ("zh", "我的书店", "一家书店", 1.0),
    ],
)
def test_overlap_sees_shared_words(lang: str, question: str, gold: str, share: float) -> None:
    """The measure of overlap recognises a word in each language."""
    assert overlap(lang, question, [gold]) == share
