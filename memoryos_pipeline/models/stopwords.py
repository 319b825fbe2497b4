"""Words and character pairs that say too little to be searched for; the lists are the files in `words`."""

from importlib.resources import files
from itertools import pairwise


def _words(name: str) -> list[str]:
    return files("memoryos_pipeline.models.words").joinpath(f"{name}.txt").read_text("utf-8").split()


ENGLISH = frozenset(_words("english"))
JAPANESE_PAIRS = frozenset(first + second for word in _words("japanese") for first, second in pairwise(word))
HAN_CHARACTERS = frozenset(_words("han"))
"""Single ideographs that are not searched alone; the pairs they are in are."""
KOREAN = frozenset(_words("korean"))
KOREAN_PARTICLES = _words("korean_particles")
"""Longest first."""
KOREAN_PARTICLES_AFTER_ONE_SYLLABLE = frozenset(_words("korean_particles_after_one_syllable"))
