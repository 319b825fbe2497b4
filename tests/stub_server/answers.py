"""What the stub says: answers built from the request alone, so that the same request gets the same answer."""

import json
import re
from typing import Any

_DATA = re.compile(r"<data-(?P<nonce>[0-9a-f]+)>\n(?P<body>.*?)\n</data-(?P=nonce)>", re.DOTALL)

_PEOPLE = re.compile(r"\b(sister|boss|friend|brother) ([A-Z]\w+)")


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
    answer = _ANSWERS[request["tool_choice"]["name"]](shown_data(request))
    return _with_relations(answer) if wants_relations(request) else answer


def wants_relations(request: dict[str, Any]) -> bool:
    """Tell whether statements are asked for with what they relate."""
    return "RelationAnswer" in request["tools"][0]["input_schema"].get("$defs", {})


def _with_relations(answer: dict[str, Any]) -> dict[str, Any]:
    """Relate each statement's speaker to whoever `kind Name` stands for in it: `boss Mina` is Mina, a boss."""
    return {**answer, "statements": [{**each, **_graph(each)} for each in answer["statements"]]}


def _graph(statement: dict[str, Any]) -> dict[str, Any]:
    people = [{"name": name, "type": kind} for kind, name in _PEOPLE.findall(statement["content"])]
    speaker = {"source": statement["actor"], "source_type": "speaker", "name": "knows"}
    relations = [{**speaker, "target": each["name"], "target_type": each["type"]} for each in people]
    return {"entities": people, "relations": relations}


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
