"""The language model behind an Anthropic-compatible API: structured answers, checked item by item, paid once."""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from memoryos_pipeline.domain.budget import Payment, tokens_at_most
from memoryos_pipeline.domain.errors import InvalidOutputError, ModelError
from memoryos_pipeline.domain.knowledge import Candidate, Decision, Distillate, Neighbour, Verdict
from memoryos_pipeline.domain.pages import TOO_LONG, PageSummary, PageText, is_summary
from memoryos_pipeline.domain.turns import Turn
from memoryos_pipeline.models.answer_reading import Offered, read_statements, read_verdicts
from memoryos_pipeline.models.answer_shapes import (
    TOOLS,
    DistillAnswer,
    GivenAnswer,
    ResolveAnswer,
    Shape,
    SummaryAnswer,
)
from memoryos_pipeline.models.anthropic_client import AnthropicClient, InputTooLongError, OutputCutError, Reply
from memoryos_pipeline.models.prompt_text import VERSIONS, cut_middle, load_prompt, quote, request_digest, turn_data
from memoryos_pipeline.models.protocols import Journal

PAGE_CHARACTERS = 40_000
SMALLER_SHARE = 4
"""An input that does not fit is tried once more at this fraction of its size."""
OUTPUT_TOKENS = 4_096
MORE_OUTPUT_TOKENS = 8_192
CONTEXT_CHARACTERS = 60_000
TRIES = 2
"""A call and one repair."""

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Task:
    """One kind of question: its name, what it is shown, and how its answer is read (told whether a try is the last)."""

    name: str
    data: Any
    read: Callable[[Shape, bool], Any]


class AnthropicModel:
    """Reads pages through the Messages API."""

    def __init__(self, client: AnthropicClient) -> None:
        self._client = client
        self.name = f"{client.model}+prompts@1"

    def summarize(self, page: PageText, *, journal: Journal) -> PageSummary:
        """Summarize a page in its own language; a page without words is answered without a call."""
        turns = _said(page.turns)
        if not turns:
            return PageSummary("", (), (), continues=False, model=self.name)

        def data(room: int) -> dict[str, Any]:
            return {
                "page": turn_data(turns, max_characters=room),
                "page_before": turn_data(_said(page.previous_turns), max_characters=room // 4),
            }

        return self._with_room("summarize", data, lambda answer, _: self._summary(answer, page), journal)

    def distill(self, page: PageText, *, journal: Journal) -> Distillate:
        """Find the statements of a page, and what they relate where that is wanted; without words nothing is asked."""
        turns = _said(page.turns)
        if not turns:
            return Distillate((), (), self.name)

        def read(answer: Shape, last_try: bool) -> Distillate:
            return read_statements(_as(DistillAnswer, answer), turns, model=self.name, last_try=last_try)

        name = "distill_relations" if page.relations_wanted else "distill"
        return self._with_room(name, lambda room: {"page": turn_data(turns, max_characters=room)}, read, journal)

    def resolve(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Neighbour]], *, journal: Journal
    ) -> list[Verdict]:
        """Decide on each candidate; without any neighbour everything is new and nothing is asked."""
        if len(candidates) != len(neighbours):
            message = f"{len(candidates)} candidates with {len(neighbours)} lists of neighbours"
            raise ModelError(message)
        if not any(neighbours):
            return [Verdict(Decision.ADD, reason="nothing known about it") for _ in candidates]
        offered = Offered.number(neighbours)
        task = Task(
            "resolve",
            {"new_statements": [_shown(i, c, offered.neighbours[i]) for i, c in enumerate(candidates)]},
            lambda answer, last: read_verdicts(_as(ResolveAnswer, answer), candidates, offered, last_try=last),
        )
        verdicts: list[Verdict] = self._ask(task, journal)
        return verdicts

    def answer(self, question: str, context: str, *, journal: Journal) -> str | None:
        """Answer from the context alone, in the language of the question."""
        data = {"question": question[:4_000], "memories": cut_middle(context, CONTEXT_CHARACTERS)}
        task = Task("answer", data, lambda answer, _: _as(GivenAnswer, answer).answer)
        text: str = self._ask(task, journal)
        return text

    def _summary(self, answer: Shape, page: PageText) -> PageSummary:
        said = _as(SummaryAnswer, answer)
        if not is_summary(said.summary, page):
            raise InvalidOutputError(TOO_LONG)
        return PageSummary(
            summary=said.summary,
            keywords=tuple(said.keywords),
            topics=tuple(said.topics),
            continues=said.continues and bool(page.previous_turns),
            model=self.name,
        )

    def _with_room(
        self, name: str, data: Callable[[int], Any], read: Callable[[Shape, bool], Read], journal: Journal
    ) -> Read:
        """Ask with the whole page, and once more with less of it when the window is too small."""
        try:
            first: Read = self._ask(Task(name, data(PAGE_CHARACTERS), read), journal)
        except InputTooLongError:
            second: Read = self._ask(Task(name, data(PAGE_CHARACTERS // SMALLER_SHARE), read), journal)
            return second
        return first

    def _ask(self, task: Task, journal: Journal) -> Any:
        """Return the read answer: the kept one if this was asked before, otherwise asked, repaired once, and kept."""
        digest = request_digest(task.name, self._client.model, task.data)
        shape = TOOLS[task.name][1]
        kept = _kept(journal.find(task.name, digest), shape)
        if kept is not None:
            return task.read(kept, True)
        problem, tokens = "", OUTPUT_TOKENS
        for attempt in range(1, TRIES + 1):
            request = _request(task, problem=problem, max_tokens=tokens)
            try:
                with self._paying(request, journal) as payment:
                    reply = self._client.call(request)
                    payment.tokens = reply.tokens_in + reply.tokens_out
                    answer, result = _first_that_reads(reply, task, last_try=attempt == TRIES)
                    # Kept before it is settled: whatever fails from here on, nothing is asked and paid again.
                    self._keep(task, digest, answer, reply, journal)
            except InvalidOutputError as error:
                if attempt == TRIES:
                    raise
                problem = str(error)
                tokens = MORE_OUTPUT_TOKENS if isinstance(error, OutputCutError) else OUTPUT_TOKENS
            else:
                return result
        raise InvalidOutputError

    def _paying(self, request: dict[str, Any], journal: Journal) -> AbstractContextManager[Payment]:
        """Stand around one call: within the tenant's budget and the provider's breaker, counted however it is read."""
        tokens = tokens_at_most(json.dumps(request, ensure_ascii=False), output_tokens=request["max_tokens"])
        return journal.paying(self._client.provider, tokens=tokens, seconds=self._client.deadline_seconds)

    def _keep(self, task: Task, digest: bytes, answer: Shape, reply: Reply, journal: Journal) -> None:
        journal.keep(
            task.name,
            digest,
            answer.model_dump(mode="json"),
            model=self._client.model,
            prompt_version=VERSIONS[task.name],
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
        )


def _kept(response: dict[str, Any] | None, shape: type[Shape]) -> Shape | None:
    try:
        return None if response is None else shape.model_validate(response)
    except ValidationError:
        return None  # kept under an older shape: asked again


def _said(turns: Sequence[Turn]) -> list[Turn]:
    """Leave out system, tool and recalled turns, and turns without a letter or digit."""
    spoken = (turn for turn in turns if turn.role in ("user", "assistant") and turn.kind == "normal")
    return [turn for turn in spoken if any(map(str.isalnum, turn.content))]


def _shown(index: int, candidate: Candidate, offered: dict[int, Neighbour]) -> dict[str, Any]:
    return {
        "statement": index,
        "text": candidate.content,
        "actor": candidate.actor,
        "said": candidate.turn_at.isoformat(timespec="minutes"),
        "slot": candidate.slot,
        "value": candidate.slot_value,
        "known_near_it": [
            {
                "neighbour": number,
                "text": neighbour.content[:800],
                "actor": neighbour.actor,
                "said": neighbour.turn_at.isoformat(timespec="minutes"),
                "slot": neighbour.slot,
                "value": neighbour.slot_value,
            }
            for number, neighbour in offered.items()
        ],
    }


def _request(task: Task, *, problem: str, max_tokens: int) -> dict[str, Any]:
    tool, shape = TOOLS[task.name]
    text = quote(task.data)
    if problem:
        text += (
            f"\n\nYour answer before could not be used: {problem[:500]}. Answer again, whole and in the tool's shape."
        )
    return {
        "max_tokens": max_tokens,
        "system": load_prompt(task.name),
        "tools": [{"name": tool, "description": str(shape.__doc__), "input_schema": shape.model_json_schema()}],
        "tool_choice": {"type": "tool", "name": tool},
        "messages": [{"role": "user", "content": text}],
    }


def _first_that_reads(reply: Reply, task: Task, *, last_try: bool) -> tuple[Shape, Any]:
    """Return the first object of the reply that has the shape, with what it reads as."""
    problem = "it holds no JSON object"
    for found in reply.objects:
        try:
            answer = TOOLS[task.name][1].model_validate(found)
        except ValidationError as error:
            problem = _sentence(error)
        else:
            return answer, task.read(answer, last_try)
    raise InvalidOutputError(problem)


def _sentence(error: ValidationError) -> str:
    items = error.errors(include_input=False, include_url=False, include_context=False)[:5]
    return "; ".join(f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in items)


def _as(shape: type[Read], answer: Shape) -> Read:
    if not isinstance(answer, shape):
        message = f"expected {shape.__name__}"
        raise InvalidOutputError(message)
    return answer
