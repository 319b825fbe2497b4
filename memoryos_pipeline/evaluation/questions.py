"""Questions whose answers are known by the turns that hold them: of a LoCoMo file, and of the sample. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ADVERSARIAL = "5"
"""LoCoMo's category of questions about the wrong person: their evidence only tempts, and is in no headline."""
EVIDENCE = re.compile(r"D:?(\d+):(\d+)")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """One question to one user's memory, asked at a moment (ISO 8601); `gold` are client_turn_ids that answer it."""

    question_id: str
    category: str
    user_id: str
    agent_id: str
    text: str
    asked_at: str
    gold: frozenset[str]

    @property
    def is_headline(self) -> bool:
        """Whether the question counts in the overall figures."""
        return self.category != ADVERSARIAL


@dataclass(frozen=True, slots=True)
class DataSet:
    """Turns to remember, questions about them, and by user the session of each turn.

    `dropped` counts questions without any evidence, and pieces of evidence that name no turn.
    """

    turns: Sequence[Row]
    questions: Sequence[Question]
    session_of: Mapping[str, Mapping[str, str]]
    dropped: Mapping[str, int] = field(default_factory=dict)


def locomo_data(samples: Iterable[Row], turns: Sequence[Row]) -> DataSet:
    """Pair the questions of LoCoMo samples with the turns of the same file; asked when the last turn was said."""
    by_user = _by_user(turns)
    questions: list[Question] = []
    dropped = {"questions_without_evidence": 0, "evidence_without_turn": 0}
    for sample in samples:
        said = by_user[str(sample["sample_id"])]
        known = {turn["client_turn_id"] for turn in said}
        for number, qa in enumerate(sample["qa"]):
            named = list(_evidence(qa.get("evidence") or ()))
            gold = known.intersection(named)
            dropped["evidence_without_turn"] += len(set(named) - known)
            dropped["questions_without_evidence"] += not gold
            if gold:
                questions.append(_locomo_question(said, qa, number, frozenset(gold)))
    sessions = {
        user: {turn["client_turn_id"]: turn["client_turn_id"].partition(":")[0] for turn in said}
        for user, said in by_user.items()
    }
    return DataSet(turns, questions, sessions, dropped)


def sample_data(questions: Iterable[Row], turns: Sequence[Row]) -> DataSet:
    """Pair the rows of questions.jsonl with those of turns.jsonl; a session is a conversation."""
    asked = [
        Question(
            question_id=row["question_id"], category=f"{row['lang']} {row['category']}", user_id=row["user_id"],
            agent_id=row["agent_id"], text=row["question"], asked_at=row["asked_at"], gold=frozenset(row["gold"]),
        )
        for row in questions
    ]  # fmt: skip
    sessions = {
        user: {turn["client_turn_id"]: turn["conversation_id"] for turn in said}
        for user, said in _by_user(turns).items()
    }
    return DataSet(turns, asked, sessions)


def _locomo_question(said: Sequence[Row], qa: Row, number: int, gold: frozenset[str]) -> Question:
    last = said[-1]
    return Question(
        question_id=f"{last['user_id']}-{number}", category=str(qa["category"]), user_id=last["user_id"],
        agent_id=last["agent_id"], text=str(qa["question"]), asked_at=last["occurred_at"], gold=gold,
    )  # fmt: skip


def _evidence(written: Iterable[str]) -> Iterator[str]:
    # A few pieces are written "D8:6; D9:17", "D:11:26" or "D30:05".
    for piece in written:
        for session, turn in EVIDENCE.findall(piece):
            yield f"D{int(session)}:{int(turn)}"


def _by_user(turns: Iterable[Row]) -> dict[str, list[Row]]:
    users: dict[str, list[Row]] = {}
    for turn in turns:
        users.setdefault(turn["user_id"], []).append(turn)
    return users
