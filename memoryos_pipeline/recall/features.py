"""From evidence to candidates: the recorded features of every turn, piece of knowledge and page. Pure.

A feature is one column over all candidates: turns first, in the order of conversations, then knowledge, then pages.
NaN stands for what is unknown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from memoryos_pipeline.domain.forgetting import DAY_SECONDS
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.question_dates import FADE_DAYS, DateWindow, has_time_expression
from memoryos_pipeline.domain.turn_marks import is_question_only
from memoryos_pipeline.models.lexical import normalize_text
from memoryos_pipeline.recall.columns import (
    Floats,
    Ids,
    Places,
    best_of,
    find,
    find_places,
    floats_of,
    ids_of,
    take,
)
from memoryos_pipeline.recall.gather import KNOWLEDGE, PAGE, TURN, Evidence

LINKED_SIGNALS = ("entity", "entity_owners")
WINDOW_SIGNALS = ("window_before", "window_around")

Columns = dict[str, Floats]


@dataclass(frozen=True, slots=True)
class TurnPlaces:
    """Where the turns among the candidates stand: conversation (a position in `ids`), seq, moment (epoch seconds)."""

    ids: Ids
    conversations: Places
    seqs: Places
    at: Floats

    def find(self, conversations: Places, seqs: Places) -> Places:
        """Return which turn candidate is at each place, -1 where none is."""
        return find_places((self.conversations, self.seqs), (conversations, seqs))


@dataclass(frozen=True, slots=True)
class Candidates:
    """What may be recalled: kind (a number of KINDS), id and features of each.

    Candidate `lenders[i]` borrows context from the turn that is said or cited at (`conversations[i]`, `seqs[i]`): a
    turn from itself, knowledge from every turn it cites.
    """

    kinds: Places
    owner_ids: Ids
    features: Columns
    turns: TurnPlaces
    lenders: Places
    conversations: Places
    seqs: Places

    def __len__(self) -> int:
        return len(self.kinds)


def build_candidates(evidence: Evidence, policy: Policy) -> Candidates:
    """Return every candidate of the evidence with its features, unscaled."""
    turns = _turn_places(evidence)
    cited = find(ids_of(evidence.knowledge), ids_of(evidence.sources))
    where = find(turns.ids, ids_of(evidence.sources, "conversation_id"))
    seqs = evidence.sources["seq"].astype(np.intp)
    said, at = _turns(evidence, turns), turns.find(where, seqs)
    known = _knowledge(evidence, said, cited=cited, at=at)
    if len(evidence.linked.owners):
        known |= _linked(evidence)
        said |= _lent({name: known[name] for name in LINKED_SIGNALS}, cited=cited, at=at, count=len(evidence.turns))
    columns = [said, known, _pages(evidence, policy)]
    sizes = (len(evidence.turns), len(evidence.knowledge), len(evidence.pages))
    return Candidates(
        kinds=np.repeat(np.array([TURN, KNOWLEDGE, PAGE], dtype=np.intp), sizes),
        owner_ids=np.concatenate([ids_of(rows) for rows in (evidence.turns, evidence.knowledge, evidence.pages)]),
        features=_stack(columns, sizes),
        turns=turns,
        lenders=np.concatenate([np.arange(sizes[0]), sizes[0] + cited]),
        conversations=np.concatenate([turns.conversations, where]),
        seqs=np.concatenate([turns.seqs, seqs]),
    )


def _linked(evidence: Evidence) -> Columns:
    linked, at = evidence.linked, find(evidence.linked.owners, ids_of(evidence.knowledge))
    values = (np.nan_to_num(take(linked.strength, at)), np.nan_to_num(take(linked.shared_by, at), nan=1.0))
    return dict(zip(LINKED_SIGNALS, values, strict=True))


def _lent(known: Columns, *, cited: Places, at: Places, count: int) -> Columns:
    """Let a turn have what the strongest statement has that cites it."""
    order = np.argsort(known["entity"][cited], kind="stable")
    order = order[at[order] >= 0]
    lent = {"entity": np.zeros(count), "entity_owners": np.ones(count)}
    for name, column in lent.items():
        column[at[order]] = known[name][cited[order]]
    return lent


def _turn_places(evidence: Evidence) -> TurnPlaces:
    ids, numbers = np.unique(ids_of(evidence.turns, "conversation_id"), return_inverse=True)
    return TurnPlaces(ids, numbers, evidence.turns["seq"].astype(np.intp), floats_of(evidence.turns, "at"))


def _turns(evidence: Evidence, turns: TurnPlaces) -> Columns:
    rows, index = evidence.turns, evidence.index
    counts, lengths = index.counts_of(ids_of(rows))
    lengths = np.maximum(floats_of(rows, "terms"), 0.0)
    counts[evidence.fresh], lengths[evidence.fresh] = evidence.fresh_counts, evidence.fresh_lengths
    kinds = np.full(len(rows), TURN)
    before = turns.find(turns.conversations, turns.seqs - 1)
    after = turns.find(turns.conversations, turns.seqs + 1)
    columns = {
        "bm25": index.score(counts, lengths, kinds),
        "date": closeness(evidence.question.windows, turns.at),
        "length": np.log1p(lengths),
        "dense": evidence.dense.cosine(ids_of(rows), is_indexed=rows["terms"] >= 0),
        "actor": rows["said"].astype(np.float64),
        "time_word": floats_of(rows, "tells_time") * evidence.question.asks_when,
        "question_only": floats_of(rows, "asks_only"),
    }
    columns["question_only"][evidence.fresh] = _told(evidence.texts, is_question_only)
    columns["time_word"][evidence.fresh] = _time_words(evidence, evidence.texts)
    for name, neighbours in zip(WINDOW_SIGNALS, ([before], [before, after]), strict=True):
        window, words, width = counts.copy(), lengths.copy(), np.ones(len(rows))
        for near in neighbours:
            there = near >= 0
            window[there] += counts[near[there]]
            words[there] += lengths[near[there]]
            width += there
        columns[name] = index.score(window, words, kinds, width)
    return columns


def _time_words(evidence: Evidence, texts: Sequence[str | None]) -> Floats:
    if not evidence.question.asks_when:
        return np.zeros(len(texts))
    return _told(texts, has_time_expression)


def _told(texts: Sequence[str | None], tell: Callable[[str], bool]) -> Floats:
    """Return what is told of each text as 0 or 1; 0 where no text was read."""
    return np.array([text is not None and tell(text) for text in texts], dtype=np.float64)


def _knowledge(evidence: Evidence, said: Columns, *, cited: Places, at: Places) -> Columns:
    """Knowledge stands in the context of the turns it cites, so it borrows their windows."""
    rows, question = evidence.knowledge, evidence.question
    columns = _shared(evidence, ids_of(rows), KNOWLEDGE)
    for name in WINDOW_SIGNALS:
        columns[name] = np.nan_to_num(best_of(take(said[name], at), cited, count=len(rows)))
    idle_days = np.maximum(0.0, evidence.frame.now.timestamp() - floats_of(rows, "reinforced_at")) / DAY_SECONDS
    weights = floats_of(rows, "w0") * np.exp(-idle_days / floats_of(rows, "strength_days"))
    has_event = rows["has_event"] * float(question.asks_when)
    return columns | {
        "date": closeness(question.windows, floats_of(rows, "at")),
        "actor": np.array([question.actor == normalize_text(name) for name in evidence.actors], dtype=np.float64),
        "time_word": np.maximum(has_event, _time_words(evidence, evidence.knowledge_texts)),
        "vitality": np.clip(weights, 0.0, 1.0),
    }


def _pages(evidence: Evidence, policy: Policy) -> Columns:
    rows, windows = evidence.pages, evidence.question.windows
    first, last = (closeness(windows, floats_of(rows, name)) for name in ("first_at", "last_at"))
    return _shared(evidence, ids_of(rows), PAGE) | {
        "date": np.maximum(first, last),
        "vitality": floats_of(rows, "heat") * _cooling(evidence, policy),
    }


def _cooling(evidence: Evidence, policy: Policy) -> Floats:
    """Return by what each page's heat has fallen since it had its value, by the clock of the policy."""
    if policy.heat == "ema_tick":
        return policy.alpha ** np.maximum(0.0, floats_of(evidence.pages, "ticks"))
    idle = np.maximum(0.0, evidence.frame.now.timestamp() - floats_of(evidence.pages, "heat_at"))
    return 0.5 ** (idle / DAY_SECONDS / policy.heat_half_life_days)


def _shared(evidence: Evidence, owners: Ids, kind: int) -> Columns:
    counts, lengths = evidence.index.counts_of(owners)
    return {
        "bm25": evidence.index.score(counts, lengths, np.full(len(owners), kind)),
        "length": np.log1p(lengths),
        "dense": evidence.dense.cosine(owners),
    }


def closeness(windows: Sequence[DateWindow], at: Floats) -> Floats:
    """Return `question_dates.closeness` of many moments (epoch seconds) at once."""
    return reduce(np.maximum, (_closeness(window, at) for window in windows), np.zeros(len(at)))


def _closeness(window: DateWindow, at: Floats) -> Floats:
    start, end = window.start.timestamp(), window.end.timestamp()
    gap = np.where(at < start, start - at, np.where(at < end, 0.0, at - end))
    faded: Floats = window.weight * np.exp(-(gap / DAY_SECONDS) / FADE_DAYS[window.unit])
    return faded


def _stack(parts: Sequence[Columns], sizes: Sequence[int]) -> Columns:
    names = dict.fromkeys(name for part in parts for name in part)
    unknown = [np.full(size, np.nan) for size in sizes]
    return {
        name: np.concatenate([part.get(name, absent) for part, absent in zip(parts, unknown, strict=True)])
        for name in names
    }
