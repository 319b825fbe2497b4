"""What each tier is worth: the same lives and talks, remembered by memories that each have to do without something."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from statistics import fmean
from typing import Any

from memoryos_pipeline.domain.policies import DEFAULT, Policy
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.evaluation.conflicts import Scorer
from memoryos_pipeline.evaluation.conflicts_run import COOLING, Pipeline
from memoryos_pipeline.evaluation.corpus import AGENT, Corpus, Line
from memoryos_pipeline.evaluation.metrics import expand, recall_at
from memoryos_pipeline.evaluation.questions import DataSet, Question
from memoryos_pipeline.pipeline import STAGES
from memoryos_pipeline.readmodels.known import count_recallable
from memoryos_pipeline.recall.context import build_context
from memoryos_pipeline.recall.results import Result
from memoryos_pipeline.recall.search import Ask, search

K = 10
TOKEN_BUDGET = 1_000
HOT_LIMIT = 200
"""Turns looked through for those that are hot, where nothing else is searched."""
MONTH = COOLING
FULL = replace(DEFAULT, forget_brake_share=1.0)
"""The preset, without the brake that stops a sweep which takes much at once: here a month passes in a moment."""
EVERY = frozenset(WorkKind(kind) for kind in STAGES)
COLD = frozenset({WorkKind.DISTILL, WorkKind.MERGE, WorkKind.FORGET})


@dataclass(frozen=True, slots=True)
class Variant:
    """A memory that does without something: by its policy, by work that is never done, by what is searched.

    What is hot is recalled by every one.
    """

    policy: Policy = FULL
    works: frozenset[WorkKind] = EVERY
    recalls: tuple[str, ...] = ("turn", "knowledge", "page")


VARIANTS = {
    "full": Variant(),
    "without cold": Variant(works=EVERY - COLD),
    "without forgetting": Variant(replace(FULL, forget="none")),
    "without warm": Variant(replace(FULL, distill_when="sealed"), recalls=("knowledge",)),
    "hot only": Variant(works=frozenset({WorkKind.ADVANCE}), recalls=()),
}


@dataclass(frozen=True, slots=True)
class Told:
    """One language: lives of which it is known what is true in the end, and talks with questions about them."""

    lives: Corpus
    talks: DataSet

    @property
    def lines(self) -> list[Line]:
        """Every turn; the lives are moved so that they end with the talks."""
        talked = [_line(row) for row in self.talks.turns]
        ends = [max(line.at for line in lines) for lines in (talked, self.lives.lines)]
        return [*talked, *(replace(line, at=line.at + (ends[0] - ends[1])) for line in self.lives.lines)]


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of one question: the share of its answer among the first ten turns, and the tokens of a context."""

    r10: float
    tokens: int


def remember(pipeline: Pipeline, lines: Sequence[Line], *, advanced: Callable[[int], object]) -> None:
    """Let months pass as they are told, each with its sweeps; everybody's last talk is still going on at the end."""
    going_on = set({line.user_id: line.conversation_id for line in _by_time(lines) if not line.late}.items())
    last = [line for line in lines if (line.user_id, line.conversation_id) in going_on]
    over = [line for line in lines if (line.user_id, line.conversation_id) not in going_on]
    now = min(line.at for line in lines)
    for month, said in _months(over):
        now += MONTH * month
        pipeline.live(said, now=now, advanced=advanced)
    pipeline.record(_by_time(last), now=now + MONTH, advanced=advanced)
    pipeline.drain()


def ask_all(
    pipeline: Pipeline, variant: Variant, questions: Sequence[Question], *, advanced: Callable[[int], object]
) -> list[Asked]:
    """Ask every question for a context, and for what is ranked first."""
    asked = []
    for question in questions:
        asked.append(_ask(pipeline, variant, question))
        advanced(1)
    return asked


def measure(pipeline: Pipeline, variant: Variant, told: Told, asked: Sequence[Asked]) -> dict[str, Any]:
    """Return every figure of one language; `old_truth_live` is None where nothing is held to be true at all."""
    lives = replace(told.lives, lines=tuple(line for line in told.lines if line.user_id in _users(told.lives)))
    known = pipeline.known()
    counts = Scorer(lives, known).counts()
    users = _users(lives) | {question.user_id for question in told.talks.questions}
    with pipeline.parts.database.transaction(pipeline.tenant_id) as connection:
        items = count_recallable(connection, pipeline.tenant_id)
    counted = {*variant.recalls, "hot"}
    return {
        "r10": round(fmean(each.r10 for each in asked), 4),
        "facts_found": round(counts["facts_found"].share, 4),
        "old_truth_live": round(counts["old_truth_live"].share, 4) if known else None,
        "live_items": sum(number for (user, kind), number in items.items() if user in users and kind in counted),
        "context_tokens": round(fmean(each.tokens for each in asked), 1),
    }


def across_languages(by_language: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the mean of every figure over the languages, the sum of the items, and each language beside them."""
    names = next(iter(by_language.values()))
    columns = {name: [row[name] for row in by_language.values() if row[name] is not None] for name in names}
    means = {name: round(fmean(values), 4) if values else None for name, values in columns.items()}
    return {**means, "live_items": sum(columns["live_items"]), "by_language": by_language}


def _ask(pipeline: Pipeline, variant: Variant, question: Question) -> Asked:
    ask = Ask(
        question.user_id, AGENT, question.text, now=datetime.fromisoformat(question.asked_at), kinds=variant.recalls
    )
    context = build_context(pipeline.parts, pipeline.tenant_id, ask, token_budget=TOKEN_BUDGET)
    results = [*context.retrieval.results, *_hot(pipeline, variant, ask)]
    ranked = sorted(results, key=lambda result: -result.score)
    found = expand([turn.client_turn_id for turn in result.source_turns] for result in ranked)
    return Asked(recall_at(found, question.gold, K), context.tokens)


def _hot(pipeline: Pipeline, variant: Variant, ask: Ask) -> list[Result]:
    """Return the hot turns as a search of turns ranks them, where turns are not searched anyway."""
    if "turn" in variant.recalls:
        return []
    turns = search(pipeline.parts, pipeline.tenant_id, replace(ask, kinds=("turn",), limit=HOT_LIMIT))
    return [result for result in turns.results if result.is_hot]


def _months(lines: Sequence[Line]) -> Iterator[tuple[int, list[Line]]]:
    """Yield what was said in each month, and how many months have passed since the one before; late lines at last."""
    first = min(line.at for line in lines)
    by_month = groupby(_by_time(line for line in lines if not line.late), key=lambda line: (line.at - first) // MONTH)
    months = [(month, list(said)) for month, said in by_month]
    months[-1][1].extend(line for line in lines if line.late)
    before = -1
    for month, said in months:
        yield month - before, said
        before = month


def _by_time(lines: Any) -> list[Line]:
    return sorted(lines, key=lambda line: line.at)


def _line(row: dict[str, Any]) -> Line:
    return Line(
        row["client_turn_id"], row["user_id"], row["role"], row["speaker"], row["content"],
        datetime.fromisoformat(row["occurred_at"]),
    )  # fmt: skip


def _users(corpus: Corpus) -> set[str]:
    return {line.user_id for line in corpus.lines}
