"""Builds requests from prompt files and quoted data. What people wrote never becomes part of a prompt's own text."""

import hashlib
import json
import secrets
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from memoryos_pipeline.domain.turns import Turn

VERSIONS = {
    "summarize": "summarize@1", "distill": "distill@1", "distill_relations": "distill@1+relations@1",
    "resolve": "resolve@1", "answer": "answer@1",
}  # fmt: skip
"""What a task is asked by: a prompt file, or several one after the other."""
CUT_MARK = " […] "


@cache
def load_prompt(task: str) -> str:
    """Return the prompt of a task in its current version."""
    folder = files("memoryos_pipeline.models.prompts")
    return "\n".join(folder.joinpath(f"{name}.md").read_text("utf-8") for name in VERSIONS[task].split("+"))


def quote(data: Any) -> str:
    """Return data as JSON between delimiters that it cannot close: their nonce is new for each request."""
    body = json.dumps(data, ensure_ascii=False, indent=1)
    nonce = secrets.token_hex(8)
    return f"<data-{nonce}>\n{body}\n</data-{nonce}>"


def request_digest(task: str, model: str, data: Any) -> bytes:
    """Return the identity of a request: task, model, prompt version and input, without the nonce."""
    request = {"task": task, "model": model, "prompt_version": VERSIONS[task], "input": data}
    text = json.dumps(request, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def turn_data(turns: Sequence[Turn], *, max_characters: int) -> list[dict[str, Any]]:
    """Return turns as data; together at most about `max_characters`, long ones cut in the middle."""
    room = max(200, max_characters // max(1, len(turns)))
    return [
        {
            "turn": turn.seq,
            "role": turn.role,
            "speaker": turn.speaker,
            "date": turn.occurred_at.isoformat(timespec="minutes"),
            "text": cut_middle(turn.content, room),
        }
        for turn in turns
    ]


def cut_middle(text: str, max_characters: int) -> str:
    """Return the text, or its two ends when it is longer than allowed."""
    if len(text) <= max_characters:
        return text
    half = (max_characters - len(CUT_MARK)) // 2
    return f"{text[:half]}{CUT_MARK}{text[-half:]}"
