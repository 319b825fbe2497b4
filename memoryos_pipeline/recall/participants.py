"""Who is meant by a question: the speakers it names, and the question without their names. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memoryos_pipeline.domain.language import HAN, HANGUL, HIRAGANA, KATAKANA, LATIN
from memoryos_pipeline.domain.spelling import is_misspelt, parts_of_unspaced
from memoryos_pipeline.models.lexical import normalize_text

GENERIC = frozenset({"user", "assistant", "system", "tool", "human", "ai", "bot", "default", "agent"})
"""Names that are words; they are never taken for a person."""
MIN_NICKNAME = 3
"""A capitalized beginning of a name this long stands for it (Mel for Melanie), when it fits one speaker only."""
HONORIFICS = "さん|ちゃん|くん|君|様|さま|先輩|先生|씨|님|군|양|同学|老师|小姐|女士|哥|姐"
PARTICLES = (
    "には|にも|では|とは|との|からの|からは|は|が|の|を|に|と|も|へ"
    "|에게는|에게서|에게|한테|께서|에는|이는|이가|이의|이랑|은|는|이|가|의|을|를|와|과|도|랑|的"
)
"""What ties a name to a Japanese, Korean or Chinese sentence, as an apostrophe and s do in English."""
WRITTEN_WITHOUT_SPACES = re.compile(f"[{HAN}{HANGUL}{HIRAGANA}{KATAKANA}]")
WHOLLY_UNSPACED = re.compile(f"[{HAN}]+|[{HANGUL}]+")
NAMELIKE = re.compile(rf"(?<!\w)[{LATIN}]+|[{KATAKANA}]+")
"""What may be a misspelt name: in Latin letters only when it begins with a capital."""
FIRST_PERSON = re.compile(
    r"\b(?:i|me|my|mine|myself|we|us|our)\b|私|僕|俺|わたし|ぼく|(?<![가-힣])(?:나|내|저|제|우리)(?:는|가|를|의|도|게|한테)?(?![가-힣])|我",
    re.IGNORECASE,
)
SECOND_PERSON = re.compile(r"\b(?:you|your|yours)\b|あなた|君|당신|네가|你|您", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Participants:
    """The speakers a question names (compared forms), and the question with every name left out."""

    named: frozenset[str]
    without_names: str

    @property
    def actor(self) -> str | None:
        """The one speaker a question is about, when it names exactly one."""
        return next(iter(self.named)) if len(self.named) == 1 else None


def find_participants(question: str, speakers: Iterable[tuple[str, str]]) -> Participants:
    """Find the speakers (name, role) that a question names; without a name, `I` is the only user who speaks."""
    people = list(speakers)
    names = [name for name, _ in people if name.casefold() not in GENERIC]
    found: dict[str, list[re.Match[str]]] = {}
    for name in dict.fromkeys(names):
        matches = [match for alias in _aliases(name, names) for match in alias.finditer(question)]
        if matches:
            found[name] = matches
    found = found or _misspelt(question, names)
    spans = [match.span() for matches in found.values() for match in matches]
    named = frozenset(map(normalize_text, found)) or _by_pronoun(question, people)
    return Participants(named, _cut(question, spans))


def _misspelt(question: str, names: Sequence[str]) -> dict[str, list[re.Match[str]]]:
    """Return the one speaker whose name a word of the question almost is; nobody when it might be two."""
    found: dict[str, list[re.Match[str]]] = {}
    for match in NAMELIKE.finditer(question):
        if match.group()[0].islower():
            continue
        written = normalize_text(match.group())
        meant = [name for name in dict.fromkeys(names) if is_misspelt(written, normalize_text(name.split()[0]))]
        if len({normalize_text(name) for name in meant}) == 1:
            found.setdefault(meant[0], []).append(match)
    return found


def _by_pronoun(question: str, people: Sequence[tuple[str, str]]) -> frozenset[str]:
    roles = [role for role, word in (("user", FIRST_PERSON), ("assistant", SECOND_PERSON)) if word.search(question)]
    if len(roles) != 1:
        return frozenset()
    meant = {normalize_text(name) for name, role in people if role == roles[0]}
    return frozenset(meant) if len(meant) == 1 else frozenset()


def _aliases(name: str, names: Sequence[str]) -> list[re.Pattern[str]]:
    words = [name, *(word for word in name.split() if len(word) > 1)]
    unspaced = [part for part in _unspaced_parts(name) if sum(part in other for other in set(names)) == 1]
    patterns = [_pattern(word) for word in dict.fromkeys([*words, *unspaced])]
    first = words[-1] if len(words) == 1 else words[1]
    others = [other for other in names if normalize_text(other) != normalize_text(name)]
    if not WRITTEN_WITHOUT_SPACES.search(first) and len(first) > MIN_NICKNAME:
        short = [first[:end] for end in range(MIN_NICKNAME, len(first))]
        fitting = [
            nick for nick in short if not any(word.startswith(nick) for other in others for word in other.split())
        ]
        if fitting:
            patterns.append(
                re.compile(rf"(?<![\w’'])(?:{'|'.join(map(re.escape, reversed(fitting)))})(?:['’]s)?(?!\w)")
            )
    return patterns


def _unspaced_parts(name: str) -> tuple[str, ...]:
    return parts_of_unspaced(name) if WHOLLY_UNSPACED.fullmatch(name) else ()


def _pattern(word: str) -> re.Pattern[str]:
    if WRITTEN_WITHOUT_SPACES.search(word):
        honorific = f"(?:{HONORIFICS})" if len(word) == 1 else f"(?:{HONORIFICS})?"
        return re.compile(re.escape(word) + honorific + f"(?:{PARTICLES})?")
    return re.compile(rf"(?<!\w){re.escape(word)}(?:['’]s)?(?!\w)", re.IGNORECASE)


def _cut(question: str, spans: Iterable[tuple[int, int]]) -> str:
    kept = list(question)
    for start, end in spans:
        kept[start:end] = [""] * (end - start)
    text = re.sub(r"\s+(?=[,.!?])", "", " ".join("".join(kept).split()))
    return text if any(character.isalnum() for character in text) else question
