"""The sample conversations the product is shown with: four people, four languages, one summer.

Every word is invented for this product. ``turns.jsonl`` holds what was said, ordered by when it
was said; ``questions.jsonl`` holds questions asked afterwards and the turns that answer them.
"""

import json
from importlib.resources import files
from typing import Any

__all__ = ["sample_questions", "sample_turns"]


def sample_turns() -> list[dict[str, Any]]:
    """Return every turn, oldest first.

    A turn holds the strings ``user_id``, ``agent_id``, ``conversation_id``, ``client_turn_id``,
    ``role`` ("user" or "assistant"), ``speaker``, ``content`` and ``occurred_at`` (ISO 8601 with
    an offset), and ``metadata``: ``{"lang": "en" | "ja" | "ko" | "zh"}``.
    """
    return _rows("turns.jsonl")


def sample_questions() -> list[dict[str, Any]]:
    """Return every question, eight a language.

    A question holds the strings ``question_id``, ``lang``, ``category`` ("episodic", "semantic",
    "temporal" or "conflict"), ``user_id``, ``agent_id``, ``question``, ``answer`` and ``asked_at``
    (ISO 8601 with an offset), and ``gold``: one to three ``client_turn_id`` values that answer it,
    the most telling first.
    """
    return _rows("questions.jsonl")


def _rows(name: str) -> list[dict[str, Any]]:
    """Read one JSON Lines file of this package: a dictionary a line."""
    text = files(__name__).joinpath(name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
