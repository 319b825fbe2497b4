"""The phrases lives are made of: banks that rules were written from, and banks that are scored, kept apart."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Any, Literal

Bank = Literal["first", "second", "third", "development"]
SCORED: tuple[Bank, ...] = ("first", "second", "third")
"""The banks that are scored. The second was written without sight of the rules, the third, small, after they were."""
IN_ONE_FILE: frozenset[Bank] = frozenset({"first", "development"})
CHANGES_NEED_NO_VALUE = "-"
NOT_TOPICS = frozenset({"people", "replies", "chatter", "homonyms", "corrections"})
_PARTICLES = {
    "을": ("을", "를"), "은": ("은", "는"), "이": ("이", "가"), "과": ("과", "와"), "으로": ("으로", "로"),
    "이에": ("이에", "예"), "이라": ("이라", "라"), "입니다": ("입니다", "입니다"), "인": ("인", "인"),
    "이-": ("이", ""), "이었": ("이었", "였"),
}  # fmt: skip
"""What follows a Korean word that ends in a consonant, and one that ends in a vowel."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What can be said of one part of a life. `replace`: a newer value ends the older. `reverse`: it is taken back."""

    kind: Literal["replace", "reverse"]
    values: tuple[str, ...]
    states: tuple[str, ...]
    changes: tuple[str, ...]
    beside: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phrases:
    """All phrases of a language and a bank."""

    lang: str
    people: tuple[str, ...]
    replies: tuple[str, ...]
    chatter: tuple[str, ...]
    topics: dict[str, Topic]
    homonyms: tuple[tuple[str, str], ...]
    assistants: tuple[str, ...]
    corrections: tuple[str, ...]


@cache
def load_phrases(lang: str, bank: Bank) -> Phrases:
    """Return the phrases of a language and a bank."""
    folder = files(__package__).joinpath("phrases")
    stored = folder if bank in IN_ONE_FILE else folder.joinpath(bank)
    given = tomllib.loads(stored.joinpath(f"{lang}.toml").read_text(encoding="utf-8"))
    said = "dev_" if bank == "development" else ""
    corrections = given["corrections"]
    return Phrases(
        lang=lang,
        people=tuple(given["people"]),
        replies=tuple(given["replies"]),
        chatter=tuple(given["chatter"]),
        topics={name: _topic(table, said) for name, table in given.items() if name not in NOT_TOPICS},
        homonyms=tuple((one, other) for one, other in given["homonyms"]["pairs"]),
        assistants=tuple(corrections["assistants"]),
        corrections=tuple(corrections[f"{said}corrections"]),
    )


def _topic(table: dict[str, Any], said: str) -> Topic:
    values, states, changes, beside = (
        tuple(table.get(f"{said}{name}", ())) for name in ("values", "states", "changes", "beside")
    )
    return Topic(table["kind"], values, states, changes, beside)


def render(template: str, lang: str, values: dict[str, str]) -> str:
    """Fill a template: `{v}` is the value, `{v:을}` the value with the particle its ending asks for."""
    text = _Korean().vformat(template, (), values)
    return text[0].upper() + text[1:] if lang == "en" else text


class _Korean(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if not format_spec:
            return str(value)
        after_consonant, after_vowel = _PARTICLES[format_spec]
        final = (ord(value[-1]) - 0xAC00) % 28 if "가" <= value[-1] <= "힣" else 0
        is_open = final == 0 or (format_spec == "으로" and final == 8)
        return f"{value}{after_vowel if is_open else after_consonant}"
