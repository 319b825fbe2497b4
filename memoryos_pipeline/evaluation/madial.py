"""MADial-Bench as questions: what happened to two children, and the talk in which one of it should come to mind. Pure.

Proactive recall: a query is everything said before the turn to be predicted, the answer the memories that fit it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from memoryos_pipeline.evaluation.questions import DataSet, Question

AGENT = "madial"
DIARY = "Diary"
"""Who tells the memories. The file does not say; the children are named in the text."""
NOON = "T12:00:00+00:00"
MAX_QUERY_BYTES = 16 * 1024

Row = dict[str, Any]


def madial_data(lang: str, memories: Mapping[str, Row], dialogues: Sequence[Row]) -> DataSet:
    """Return the memories of one language as turns of one user, a day each, and the dialogues as questions.

    `memories` maps ids to {time, event}, `dialogues` holds {dialogue, test-turn, relevant-id}.
    """
    user = f"madial-{lang}"
    ordered = sorted(memories.items(), key=lambda item: (item[1]["time"], int(item[0])))
    turns = [_turn(user, number, memory) for number, memory in ordered]
    asked_at = f"{date.fromisoformat(ordered[-1][1]['time']) + timedelta(days=1)}{NOON}"
    paired = [(dialogue, _gold(dialogue, memories)) for dialogue in dialogues]
    questions = [
        Question(f"{user}-{place}", lang, user, AGENT, _query(dialogue), asked_at, gold)
        for place, (dialogue, gold) in enumerate(paired)
        if gold
    ]
    return DataSet(
        turns,
        questions,
        {user: {turn["client_turn_id"]: turn["client_turn_id"] for turn in turns}},
        {"questions_without_evidence": sum(not gold for _, gold in paired)},
    )


def join(sets: Iterable[DataSet]) -> DataSet:
    """Return several data sets, of users of their own, as one."""
    parts = list(sets)
    dropped: dict[str, int] = {}
    for part in parts:
        for name, count in part.dropped.items():
            dropped[name] = dropped.get(name, 0) + count
    return DataSet(
        [turn for part in parts for turn in part.turns],
        [question for part in parts for question in part.questions],
        {user: sessions for part in parts for user, sessions in part.session_of.items()},
        dropped,
    )


def _turn(user: str, number: str, memory: Row) -> Row:
    return {
        "user_id": user, "agent_id": AGENT, "conversation_id": user, "client_turn_id": number, "role": "user",
        "speaker": DIARY, "content": memory["event"], "occurred_at": f"{memory['time']}{NOON}",
    }  # fmt: skip


def _gold(dialogue: Row, memories: Mapping[str, Row]) -> frozenset[str]:
    return frozenset(str(each) for each in dialogue["relevant-id"]) & memories.keys()


def _query(dialogue: Row) -> str:
    """Return what was said before the first turn to be predicted; the marks of beginning and end are left out."""
    said = [line.strip() for line in dialogue["dialogue"][: dialogue["test-turn"][0]]]
    text = "\n".join(line for line in said if line not in {"<BOD>", "<EOD>"})
    return text.encode()[-MAX_QUERY_BYTES:].decode(errors="ignore")
