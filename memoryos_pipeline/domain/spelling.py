"""How alike two names are spelt, and which shorter names stand for one. Pure; names come folded to compared forms."""

import re
import unicodedata

ONE_SLIP_FROM, TWO_SLIPS_FROM = 5, 8
"""Letters a name needs before one slip, or two, still leave it the same name: Jon and Joan are two people."""
GIVEN_NAME = 2
"""Characters of a given name behind a family name of one, in Chinese and Korean; and of either half of four."""
_ENDING = re.compile(r"(?<=[a-z]{2})(?:ie|ey|y)$")
_MARKS = range(0x300, 0x370)
_TO_HIRAGANA = {code: code - 0x60 for code in range(0x30A1, 0x30F7)}


def fold_name(name: str) -> str:
    """Return a name without the marks above its letters, in one kind of kana, with one ending for -ie, -ey and -y."""
    plain = "".join(letter for letter in unicodedata.normalize("NFD", name) if ord(letter) not in _MARKS)
    return _ENDING.sub("i", unicodedata.normalize("NFC", plain).translate(_TO_HIRAGANA))


def is_misspelt(written: str, name: str) -> bool:
    """Tell whether `written` is `name` with a slip or two: a letter wrong, missing, too many, or two swapped."""
    written, name = fold_name(written), fold_name(name)
    if written == name:
        return True
    shorter = min(len(written), len(name))
    slips = 2 if shorter >= TWO_SLIPS_FROM else 1 if shorter >= ONE_SLIP_FROM else 0
    return abs(len(written) - len(name)) <= slips and count_slips(written, name) <= slips


def count_slips(left: str, right: str) -> int:
    """Return the edit distance with swaps of neighbours (optimal string alignment)."""
    before: list[int] = []
    above = list(range(len(right) + 1))
    for row, letter in enumerate(left, start=1):
        current = [row]
        for column, other in enumerate(right, start=1):
            cost = min(above[column] + 1, current[-1] + 1, above[column - 1] + (letter != other))
            if row > 1 and column > 1 and letter == right[column - 2] and left[row - 2] == other:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        before, above = above, current
    return above[-1]


def parts_of_unspaced(name: str) -> tuple[str, ...]:
    """Return what stands for a Chinese, Japanese or Korean name written without spaces: given name, or either half."""
    if len(name) == GIVEN_NAME + 1:
        return (name[1:],)
    return (name[:GIVEN_NAME], name[GIVEN_NAME:]) if len(name) == 2 * GIVEN_NAME else ()
