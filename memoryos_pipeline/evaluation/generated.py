"""Talks of our own in four languages: two people, a year of weekly talks, and questions whose answers are known. Pure.

Every language tells the same facts in the same places, so that what differs between languages is the language. Each
fact is asked for in other words than it was said: `near` keeps a word of it, `far` next to none, `when` names its day.
`many` asks for all that was told about a subject.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from memoryos_pipeline.evaluation.questions import DataSet, Question

LANGUAGES = ("en", "ja", "ko", "zh")
SEED = 11
START = datetime(2026, 1, 3, 18, tzinfo=UTC)
WEEKS = 30
FACTS_A_WEEK = 2
SMALL_TALK_A_WEEK = 8
MINUTES_APART = 2
AGENT = "friend"
EVERY_WHEN = 10
"""Of so many facts one is asked for by its day."""
WHEN: Mapping[str, str] = {
    "en": "What happened to {who}, as told on {month_name} {day}?",
    "ja": "{month}月{day}日に{who}が話した出来事は何？",
    "ko": "{month}월 {day}일에 {who}가 이야기한 일은 뭐야?",
    "zh": "{month}月{day}日{who}说了什么事？",
}

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fact:
    """What is told once, and how it is asked for; `far` is empty where no other words were found."""

    key: str
    told: str
    near: str
    far: str


@dataclass(frozen=True, slots=True)
class Telling:
    """A fact in its place: who tells it, when, and as which turn."""

    fact: Fact
    who: str
    at: datetime
    turn_id: str


def generated_data(languages: Sequence[str] = LANGUAGES) -> DataSet:
    """Return every talk and every question; the same ones every time."""
    turns: list[Row] = []
    questions: list[Question] = []
    for lang in languages:
        said, tellings = _talk(lang)
        turns += said
        questions += _questions(lang, tellings, asked_at=turns[-1]["occurred_at"])
    sessions: dict[str, dict[str, str]] = {}
    for turn in turns:
        sessions.setdefault(turn["user_id"], {})[turn["client_turn_id"]] = turn["client_turn_id"].split("-")[0]
    return DataSet(turns, questions, sessions)


def facts(lang: str) -> list[Fact]:
    """Return the facts in one language, in their order."""
    return [Fact(key, *lines[lang]) for key, lines in _blocks("generated_facts.txt")]


def small_talk(lang: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the two names, and every sentence of small talk in one language."""
    (_, names), (_, openers), *bodies = _blocks("generated_talk.txt")
    space = " " if lang in {"en", "ko"} else ""
    return names[lang], [f"{opener}{space}{lines[lang][0]}" for opener in openers[lang] for _, lines in bodies]


def _talk(lang: str) -> tuple[list[Row], list[Telling]]:
    """Put the facts among small talk. The dice fall alike in every language."""
    names, chatter = small_talk(lang)
    told = facts(lang)
    dice = random.Random(SEED)  # noqa: S311 - a corpus, not a secret
    order = dice.sample(range(len(told)), len(told))
    chat_order = dice.sample(range(len(chatter)), len(chatter))
    turns: list[Row] = []
    tellings: list[Telling] = []
    for week in range(WEEKS):
        today = order[FACTS_A_WEEK * week : FACTS_A_WEEK * (week + 1)]
        places = dice.sample(range(1, SMALL_TALK_A_WEEK), len(today))
        about = {place: told[number] for place, number in zip(places, today, strict=True)}
        for place in range(SMALL_TALK_A_WEEK + len(about)):
            at = START + timedelta(days=7 * week, minutes=MINUTES_APART * place)
            who, turn_id = names[dice.randrange(2)], f"w{week + 1:02d}-{place + 1:02d}"
            fact = about.get(place)
            if fact:
                tellings.append(Telling(fact, who, at, turn_id))
            text = fact.told if fact else chatter[chat_order.pop()]
            turns.append(_turn(lang, turn_id, who, text, at=at, is_user=who == names[0]))
    return turns, tellings


def _turn(lang: str, turn_id: str, who: str, text: str, *, at: datetime, is_user: bool) -> Row:
    return {
        "user_id": f"generated-{lang}", "agent_id": AGENT, "conversation_id": f"generated-{lang}",
        "client_turn_id": turn_id, "role": "user" if is_user else "assistant", "speaker": who, "content": text,
        "occurred_at": at.isoformat(),
    }  # fmt: skip


def _questions(lang: str, tellings: Sequence[Telling], *, asked_at: str) -> list[Question]:
    asked: list[tuple[str, str, str, list[Telling]]] = []
    for place, telling in enumerate(tellings):
        fact, at = telling.fact, telling.at
        asked.append(("near", fact.key, fact.near.format(who=telling.who), [telling]))
        if fact.far:
            asked.append(("far", fact.key, fact.far.format(who=telling.who), [telling]))
        if place % EVERY_WHEN == 0:
            when = WHEN[lang].format(who=telling.who, month=at.month, day=at.day, month_name=f"{at:%B}")
            asked.append(("when", fact.key, when, [telling]))
    for keys, lines in _blocks("generated_topics.txt"):
        about = [telling for telling in tellings if telling.fact.key in keys.split()]
        asked.append(("many", keys.split()[0], lines[lang][0], about))
    return [
        Question(
            f"{lang}-{how}-{key}", f"{lang} {how}", f"generated-{lang}", AGENT, text, asked_at,
            frozenset(telling.turn_id for telling in about),
        )
        for how, key, text, about in asked
    ]  # fmt: skip


@cache
def _blocks(name: str) -> tuple[tuple[str, dict[str, tuple[str, ...]]], ...]:
    """Read blocks of `# key` and one line a language, its parts between bars."""
    blocks: list[tuple[str, dict[str, tuple[str, ...]]]] = []
    for line in files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            blocks.append((line[1:].strip(), {}))
        elif line.strip():
            lang, *parts = (part.strip() for part in line.split("|"))
            blocks[-1][1][lang] = tuple(parts)
    return tuple(blocks)
