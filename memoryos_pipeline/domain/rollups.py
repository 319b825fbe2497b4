"""What a day was about, and the whole so far: the page summaries that say most of it, in their order. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

DAY_CHARACTERS = 800
WHOLE_CHARACTERS = 1_600
WHOLE = "all"
"""The period of everything."""
MAX_KEYWORDS = 12
RULE = "rollup/1"
"""What wrote a rollup: this rule, its first version. No model is asked."""


@dataclass(frozen=True, slots=True)
class Told:
    """One summary that goes into a rollup."""

    text: str
    keywords: tuple[str, ...]
    lang: str


def roll_up(told: Sequence[Told], *, max_characters: int) -> Told:
    """Return one summary of several, oldest first: those whose keywords are told most often, while they fit.

    The most telling one is always in it. Its words are those of the pages, in the languages they were said in.
    """
    counts = Counter(word for each in told for word in dict.fromkeys(each.keywords))
    ranked = sorted(range(len(told)), key=lambda place: (-_weight(told[place], counts), -place))
    chosen: list[int] = []
    room = max_characters
    for place in ranked:
        if told[place].text and (not chosen or len(told[place].text) < room):
            chosen.append(place)
            room -= len(told[place].text) + 1
    languages = Counter(each.lang for each in told if each.lang != "und")
    return Told(
        "\n".join(told[place].text for place in sorted(chosen)),
        tuple(word for word, _ in counts.most_common(MAX_KEYWORDS)),
        languages.most_common(1)[0][0] if languages else "und",
    )


def _weight(told: Told, counts: Counter[str]) -> int:
    return sum(counts[word] for word in dict.fromkeys(told.keywords))
