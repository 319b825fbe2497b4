"""The phrases lives are made of: banks that rules were written from, and banks that are scored, kept apart."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Any, Literal

Bank = Literal["scored", "development"]
CHANGES_NEED_NO_VALUE = "-"
NOT_TOPICS = frozenset({"people", "replies", "chatter", "homonyms", "corrections"})
_PARTICLES = {
    "을": ("을", "를"), "은": ("은", "는"), "이": ("이", "가"), "과": ("과", "와"), "으로": ("으로", "로"),
    "이에": ("이에", "예"), "이라": ("이라", "라"), "입니다": ("입니다", "입니다"), "인": ("인", "인"),
}  # fmt: skip
"""What follows a Korean word that ends in a consonant, and one that ends in a vowel."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What can be said of one part of a life. `replace`: a newer value ends the older. `reverse`: it is taken back."""

    kind: Literal["replace", "reverse"]
    values: dict[Bank, tuple[str, ...]]
    sentences: dict[str, tuple[str, ...]]

    @property
    def has_values(self) -> bool:
        """Whether its sentences name something that differs from life to life."""
        return bool(self.values["scored"])

    def said(self, name: str, bank: Bank) -> tuple[str, ...]:
        """Return the sentences of one sort, those that are scored or those that rules may be written from."""
        return self.sentences[name if bank == "scored" else f"dev_{name}"]


@dataclass(frozen=True, slots=True)
class Phrases:
    """All phrases of a language."""

    lang: str
    people: tuple[str, ...]
    replies: tuple[str, ...]
    chatter: tuple[str, ...]
    topics: dict[str, Topic]
    homonyms: tuple[tuple[str, str], ...]
    assistants: tuple[str, ...]
    corrections: dict[Bank, tuple[str, ...]]


@cache
def load_phrases(lang: str) -> Phrases:
    """Return the phrases of a language."""
    written = files(__package__).joinpath("phrases", f"{lang}.toml").read_text(encoding="utf-8")
    given = tomllib.loads(written)
    corrections = given["corrections"]
    return Phrases(
        lang=lang,
        people=tuple(given["people"]),
        replies=tuple(given["replies"]),
        chatter=tuple(given["chatter"]),
        topics={name: _topic(table) for name, table in given.items() if name not in NOT_TOPICS},
        homonyms=tuple((one, other) for one, other in given["homonyms"]["pairs"]),
        assistants=tuple(corrections["assistants"]),
        corrections={
            "scored": tuple(corrections["corrections"]), "development": tuple(corrections["dev_corrections"]),
        },
    )  # fmt: skip


def _topic(table: dict[str, Any]) -> Topic:
    sentences = {name: tuple(said) for name, said in table.items() if isinstance(said, list) and "values" not in name}
    values: dict[Bank, tuple[str, ...]] = {
        "scored": tuple(table.get("values", ())), "development": tuple(table.get("dev_values", ())),
    }  # fmt: skip
    return Topic(table["kind"], values, sentences)


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
