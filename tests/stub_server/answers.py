"""What the stub says: answers built from the request alone, so that the same request gets the same answer."""

import json
import re
from typing import Any

_DATA = re.compile(r"<data-(?P<nonce>[0-9a-f]+)>\n(?P<body>.*?)\n</data-(?P=nonce)>", re.DOTALL)


def shown_data(request: dict[str, Any]) -> dict[str, Any]:
    """Return the data a request quotes; KeyError or ValueError when it quotes none."""
    text = request["messages"][0]["content"]
    match = _DATA.search(text)
    if match is None:
        raise ValueError("the request quotes no data")
    data: dict[str, Any] = json.loads(match["body"])
    return data


def tool_input(request: dict[str, Any]) -> dict[str, Any]:
    """Return the input for the tool the request asks to be called."""
    return _ANSWERS[request["tool_choice"]["name"]](shown_data(request))


def _summary(data: dict[str, Any]) -> dict[str, Any]:
    first = data["page"][0]
    summary = f"{first['speaker']}: {first['text'][:200]}"
    return {
        "summary": summary,
        "keywords": [word[:40] for word in dict.fromkeys(first["text"].split())][:8],
        "topics": [],
        "continues": bool(data["page_before"]),
    }


def _statements(data: dict[str, Any]) -> dict[str, Any]:
    statements = [
        {
            "content": f"{turn['speaker']}: {turn['text'][:300]}",
            "kind": "fact",
            "actor": turn["speaker"],
            "source_turns": [turn["turn"]],
            "importance": 0.5,
            "slot": None,
            "slot_value": None,
            "negated": False,
            "event_date": None,
        }
        for turn in data["page"]
        if turn["role"] == "user"
    ]
    return {"statements": statements, "traits": []}


def _verdicts(data: dict[str, Any]) -> dict[str, Any]:
    return {"verdicts": [_verdict(statement) for statement in data["new_statements"]]}


def _verdict(statement: dict[str, Any]) -> dict[str, Any]:
    decision, neighbour = "ADD", None
    for known in statement["known_near_it"]:
        if known["text"] == statement["text"]:
            decision, neighbour = "NOOP", known["neighbour"]
            break
        if statement["slot"] and known["slot"] == statement["slot"]:
            decision, neighbour = "UPDATE", known["neighbour"]
    return {"statement": statement["statement"], "decision": decision, "neighbour": neighbour, "reason": "stub"}


def _given(data: dict[str, Any]) -> dict[str, Any]:
    memories = data["memories"].strip()
    return {"answer": memories.splitlines()[0] if memories else "?", "known": bool(memories)}


_ANSWERS = {
    "record_summary": _summary,
    "record_statements": _statements,
    "record_verdicts": _verdicts,
    "give_answer": _given,
}
