"""Lives that change, made from a seed: who said what when, and what is true in the end, in four languages."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Literal

from memoryos_pipeline.evaluation.corpus_phrases import (
    CHANGES_NEED_NO_VALUE,
    SCORED,
    Bank,
    Phrases,
    Topic,
    load_phrases,
    render,
)

LANGUAGES = ("en", "ja", "ko", "zh")
PEOPLE = 12
"""Lives a language; with this many every denominator is above 200."""
START = datetime(2025, 1, 6, 8, tzinfo=UTC)
DAYS = 240
DAYS_BETWEEN_TALKS = 14
TALK_MINUTES = 14 * 60
"""A talk is spread over a day, with breaks in it now and then."""
CHAIN_SHARE = 0.4
LATE_SHARE = 0.12
REPEAT_SHARE = 0.4
ASIDE_SHARE = 0.2
"""Of what is told twice this share is told in the same words."""
AGENT = "companion"


@dataclass(frozen=True, slots=True)
class Line:
    """One turn. `truth` names what it says to be so; lines that say the same share it. None: it is no fact of theirs.

    `late` lines are handed in after everything else, whatever their date.
    """

    turn_id: str
    user_id: str
    role: Literal["user", "assistant"]
    speaker: str
    text: str
    at: datetime
    truth: str | None = None
    late: bool = False
    value: str = ""

    @property
    def conversation_id(self) -> str:
        """One conversation a talk, late ones apart."""
        return f"{'late' if self.late else 'day'}-{self.at.date().isoformat()}"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Every line with what must be so in the end; pairs are turn ids, the earlier first."""

    lang: str
    seed: int
    lines: tuple[Line, ...]
    facts: tuple[str, ...]
    changes: tuple[tuple[str, str], ...]
    compatible: tuple[tuple[str, str], ...]
    homonyms: tuple[tuple[str, str], ...]
    corrections: tuple[tuple[str, str], ...]
    """The assistant's wrong turn, and the user's that takes it back."""


def make_corpus(lang: str, seed: int, *, banks: Sequence[Bank] = SCORED, people: int = PEOPLE) -> Corpus:
    """Return the lives of one language and seed, told from the banks in turn. The same arguments give the same."""
    draw = random.Random(f"{lang}/{seed}/{','.join(banks)}")  # noqa: S311 - reproducible, hides nothing
    told = [load_phrases(lang, banks[n % len(banks)]) for n in range(people)]
    lives = [_Life(phrases, draw, user_id=f"{lang}-{seed}-{n}") for n, phrases in enumerate(told)]
    for life in lives:
        life.tell()
    return Corpus(
        lang=lang,
        seed=seed,
        lines=tuple(line for life in lives for line in life.in_order()),
        facts=tuple(line.turn_id for life in lives for line in life.lines if line.truth is not None),
        changes=tuple(pair for life in lives for pair in life.changes),
        compatible=tuple(pair for life in lives for pair in life.compatible),
        homonyms=tuple(pair for life in lives for pair in life.homonyms),
        corrections=tuple(pair for life in lives for pair in life.corrections),
    )


@dataclass
class _Life:
    """One speaker's year."""

    phrases: Phrases
    draw: random.Random
    user_id: str
    lines: list[Line] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)
    compatible: list[tuple[str, str]] = field(default_factory=list)
    homonyms: list[tuple[str, str]] = field(default_factory=list)
    corrections: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.speaker = self.draw.choice(self.phrases.people)

    def tell(self) -> None:
        """Tell every topic once, with its changes and with what stands beside it."""
        for name, topic in self.phrases.topics.items():
            last = self._change(name, topic)
            if name == "residence":
                home = last
            if topic.kind == "reverse":
                self._add_beside(name, topic, last)
            self._stand_beside(topic, last)
        self._meet_namesakes()
        self._correct_the_assistant(home)

    def in_order(self) -> Iterator[Line]:
        """Yield the lines by time, with what else is said between them."""
        for line in sorted(self.lines, key=lambda line: line.at):
            if self.draw.random() < ASIDE_SHARE:
                yield self._aside(line, "user", self.phrases.chatter, minutes=-1)
            yield line
            if line.role == "user" and self.draw.random() < ASIDE_SHARE:
                yield self._aside(line, "assistant", self.phrases.replies, minutes=1)

    def _change(self, name: str, topic: Topic) -> Line:
        """State something and change it, once or twice; return what is so in the end."""
        values, day = self._values(topic, 3), self.draw.uniform(1, 70)
        is_late = self.draw.random() < LATE_SHARE
        before = self._say(
            self._pick(topic.states), {"v": values[0]}, day=day, truth=f"{name}/{values[0]}", late=is_late
        )
        is_chain = topic.kind == "replace" and topic.values and self.draw.random() < CHAIN_SHARE
        for old, new in pairwise(values[: 3 if is_chain else 2]):
            day += self.draw.uniform(10, 60)
            now = old if topic.kind == "reverse" else new
            truth = f"{name}/not/{old}" if topic.kind == "reverse" else f"{name}/{new}/now"
            after = self._say(self._pick(topic.changes), {"v": now, "old": old}, day=day, truth=truth)
            self.changes.append((before.turn_id, after.turn_id))
            before = after
        return before

    def _add_beside(self, name: str, topic: Topic, last: Line) -> None:
        """Say another of its kind, which stands whatever became of the first; tell it once more."""
        value, day = self._values(topic, 4)[-1], self.draw.uniform(1, 150)
        template, known = self._pick(topic.states), {"v": value}
        first = self._say(template, known, day=day, truth=f"{name}/{value}")
        self.compatible.append((first.turn_id, last.turn_id))
        again = template if self.draw.random() < REPEAT_SHARE else self._pick(topic.states)
        later = day + self.draw.uniform(5, 60)
        self._say(again, known, day=later, truth=f"{name}/{value}")
        self._others(topic, value, day=later + self.draw.uniform(1, 20), standing=first)

    def _stand_beside(self, topic: Topic, last: Line) -> None:
        if topic.kind == "replace":
            value = self._values(topic, 4)[-1]
            self._others(topic, value, day=_day(last) + self.draw.uniform(1, 20), standing=last)

    def _others(self, topic: Topic, value: str, *, day: float, standing: Line) -> None:
        """Say something near it that ends nothing: of another, asked, visited, long ago."""
        beside = self._say(self._pick(topic.beside), {"v": value}, day=day)
        self.compatible.append((standing.turn_id, beside.turn_id))

    def _meet_namesakes(self) -> None:
        topics = self.phrases.topics
        values = {
            "x": self._values(topics["taste"], 5)[-1], "name": self.draw.choice(self.phrases.people),
            **dict(zip("cd", self._values(topics["residence"], 5)[-2:], strict=True)),
            **dict(zip("op", self._values(topics["occupation"], 6)[-2:], strict=True)),
        }  # fmt: skip
        for n, pair in enumerate(self.phrases.homonyms):
            days = sorted(self.draw.uniform(1, DAYS) for _ in pair)
            told = [
                self._say(template, values, day=day, truth=f"namesake/{n}/{place}")
                for place, (template, day) in enumerate(zip(pair, days, strict=True))
            ]
            self.homonyms.append((told[0].turn_id, told[1].turn_id))

    def _correct_the_assistant(self, home: Line) -> None:
        """Let the assistant name another town, and take it back; where they live stands."""
        right = home.value
        wrong = next(value for value in reversed(self._values(self.phrases.topics["residence"], 6)) if value != right)
        day = DAYS + 20
        values = {"v": right, "wrong": wrong}
        said = self._say(self._pick(self.phrases.assistants), values, day=day, role="assistant")
        template = self._pick(self.phrases.corrections)
        taken_back = self._say(template, values, day=day + 0.2, truth="correction")
        self.corrections.append((said.turn_id, taken_back.turn_id))
        self.compatible.append((home.turn_id, taken_back.turn_id))

    def _say(
        self, template: str, values: dict[str, str], *, day: float, truth: str | None = None, late: bool = False,
        role: Literal["user", "assistant"] = "user",
    ) -> Line:  # fmt: skip
        at = _moment(day)
        speaker = self.speaker if role == "user" else AGENT
        turn_id = f"{self.user_id}/{len(self.lines)}"
        said = render(template, self.phrases.lang, values)
        known_as = truth and f"{self.user_id}/{truth}"
        line = Line(turn_id, self.user_id, role, speaker, said, at, known_as, late, values.get("v", ""))
        self.lines.append(line)
        return line

    def _aside(
        self, line: Line, role: Literal["user", "assistant"], said: Sequence[str], *, minutes: int
    ) -> Line:  # fmt: skip
        speaker = self.speaker if role == "user" else AGENT
        at = line.at + timedelta(seconds=20 * minutes)
        turn_id = f"{line.turn_id}/{role}"
        return Line(turn_id, self.user_id, role, speaker, self._pick(said), at, late=line.late)

    def _values(self, topic: Topic, count: int) -> list[str]:
        """Return values of a topic in this life's own order, so that each call continues the last."""
        if not topic.values:
            return [CHANGES_NEED_NO_VALUE] * count
        values = list(topic.values)
        random.Random(f"{self.user_id}/{values}").shuffle(values)  # noqa: S311 - reproducible
        return [values[n % len(values)] for n in range(count)]

    def _pick(self, said: Sequence[str]) -> str:
        return self.draw.choice(said)


def _moment(day: float) -> datetime:
    """Return when something of a day is said: talks are two weeks apart, and keep the order of the days between."""
    talk, into = divmod(day, DAYS_BETWEEN_TALKS)
    minutes = round(TALK_MINUTES * into / DAYS_BETWEEN_TALKS)
    return START + timedelta(days=talk * DAYS_BETWEEN_TALKS, minutes=minutes)


def _day(line: Line) -> float:
    talk = (line.at.date() - START.date()).days
    return talk + (line.at - START - timedelta(days=talk)) / timedelta(minutes=TALK_MINUTES) * DAYS_BETWEEN_TALKS
