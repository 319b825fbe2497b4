"""Which questions `memoryos eval recall` asks: of a LoCoMo file, MADial-Bench, the sample, or our own corpus."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from memoryos_pipeline.cli.readers import UnreadableFileError, read_turns
from memoryos_pipeline.evaluation.madial import join, madial_data
from memoryos_pipeline.evaluation.questions import DataSet, locomo_data, sample_data
from memoryos_pipeline.sample import sample_questions, sample_turns

SAMPLE = "sample"
ZONE = ZoneInfo("UTC")
"""LoCoMo says no time zone; one is as good as another as long as turns and questions share it."""
MADIAL_LANGUAGES = ("en", "zh")


def read_data(named: str) -> DataSet:
    """Return the data set that `--data` names. Raises UnreadableFileError."""
    if named == SAMPLE:
        return sample_data(sample_questions(), sample_turns())
    path = Path(named)
    if path.is_dir():
        return _read_madial(path)
    turns = read_turns(path, ZONE)
    written = path.read_text(encoding="utf-8-sig").lstrip()
    samples = json.loads(written) if written.startswith("[") else []
    if not samples or not all("qa" in sample for sample in samples):
        raise UnreadableFileError(f"{path.name}: has no questions; a LoCoMo file, MADial-Bench or `sample` does")
    return locomo_data(samples, turns)


def keep_first(data: DataSet, limit: int | None) -> DataSet:
    """Keep the first questions, and of the turns those of the users they are about."""
    questions = data.questions[:limit]
    users = {question.user_id for question in questions}
    return replace(data, questions=questions, turns=[turn for turn in data.turns if turn["user_id"] in users])


def _read_madial(directory: Path) -> DataSet:
    """Read the languages that are there: MADial-Bench-<lang>-memory.json and -dialogue.json."""
    there = [lang for lang in MADIAL_LANGUAGES if _madial_file(directory, lang, "memory").exists()]
    if not there:
        raise UnreadableFileError(f"{directory}: holds no MADial-Bench-en-memory.json or MADial-Bench-zh-memory.json")
    return join(_madial_language(directory, lang) for lang in there)


def _madial_language(directory: Path, lang: str) -> DataSet:
    memory, dialogue = (_madial_file(directory, lang, what) for what in ("memory", "dialogue"))
    try:
        memories = {number: row for each in _objects(memory) for number, row in each.items()}
        return madial_data(lang, memories, list(_objects(dialogue)))
    except OSError as error:
        raise UnreadableFileError(f"{error.filename}: {error.strerror}") from None
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise UnreadableFileError(f"{directory}, {lang}: not MADial-Bench ({error})") from error


def _madial_file(directory: Path, lang: str, what: str) -> Path:
    return directory / f"MADial-Bench-{lang}-{what}.json"


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield every object of a file that holds one JSON value a line, or one after another."""
    text, decoder, start = path.read_text(encoding="utf-8-sig"), json.JSONDecoder(), 0
    while (start := _next_value(text, start)) < len(text):
        value, start = decoder.raw_decode(text, start)
        yield from value if isinstance(value, list) else [value]


def _next_value(text: str, start: int) -> int:
    while start < len(text) and (text[start].isspace() or text[start] == ","):
        start += 1
    return start
