"""The shapes a generating model has to answer in: the schema it is shown and the check on what it says."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints


def _without_nul(said: object) -> object:
    return said.replace("\0", "") if isinstance(said, str) else said


def _joined(said: object) -> object:
    """Return a relation's name as one word: "works for" and "works-for" are one relation."""
    return "_".join(said.casefold().replace("-", " ").split()) if isinstance(said, str) else said


Storable = Annotated[str, BeforeValidator(_without_nul)]
"""Postgres keeps no NUL, and it says nothing. A lone surrogate is no text to begin with: the answer is refused."""
Word = Annotated[Storable, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
Kind = Annotated[Word, AfterValidator(str.casefold)]
Line = Annotated[Storable, StringConstraints(strip_whitespace=True, min_length=1, max_length=800)]
Text = Annotated[Storable, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]


class Shape(BaseModel):
    """An answer; what it does not know is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SummaryAnswer(Shape):
    """What `record_summary` takes."""

    summary: Text
    keywords: list[Word] = Field(max_length=8)
    topics: list[Word] = Field(max_length=2)
    continues: bool


class Entity(Shape):
    """A name and what it names."""

    name: Word
    type: Kind


class StatementAnswer(Shape):
    """One statement of a page."""

    content: Line
    kind: Literal["fact", "event", "correction", "user_kb", "assistant_kb"]
    actor: Word
    source_turns: list[int] = Field(min_length=1, max_length=20)
    importance: float = Field(ge=0, le=1)
    slot: Word | None = None
    slot_value: Word | None = None
    negated: bool = False
    keywords: list[Word] = Field(default=[], max_length=10)
    entities: list[Entity] = Field(default=[], max_length=10)
    event_date: Annotated[str, StringConstraints(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")] | None = None


class TraitAnswer(Shape):
    """A change to a profile; `evidence` are indices into the statements of the same answer."""

    actor: Word
    dimension: Word
    level: Word
    confidence: float = Field(ge=0, le=1)
    evidence: list[int] = Field(min_length=1, max_length=20)


class DistillAnswer(Shape):
    """What `record_statements` takes."""

    statements: Sequence[StatementAnswer] = Field(max_length=40)
    traits: list[TraitAnswer] = Field(default=[], max_length=20)


class RelationAnswer(Shape):
    """A triple; both ends are entities of the statement or speakers."""

    source: Word
    source_type: Kind
    name: Annotated[Word, BeforeValidator(_joined)]
    target: Word
    target_type: Kind


class RelatedStatementAnswer(StatementAnswer):
    """One statement of a page, with what it relates."""

    relations: list[RelationAnswer] = Field(max_length=10)


class RelatedDistillAnswer(DistillAnswer):
    """What `record_statements` takes where relations are wanted."""

    statements: Sequence[RelatedStatementAnswer] = Field(max_length=40)


class VerdictAnswer(Shape):
    """The verdict on one new statement."""

    statement: int = Field(ge=0)
    decision: Literal["ADD", "UPDATE", "CLOSE", "NOOP", "COEXIST"]
    neighbour: int | None = None
    reason: Annotated[Storable, StringConstraints(max_length=300)] = ""


class ResolveAnswer(Shape):
    """What `record_verdicts` takes."""

    verdicts: list[VerdictAnswer] = Field(max_length=100)


class GivenAnswer(Shape):
    """What `give_answer` takes."""

    answer: Text
    known: bool


TOOLS: dict[str, tuple[str, type[Shape]]] = {
    "summarize": ("record_summary", SummaryAnswer),
    "distill": ("record_statements", DistillAnswer),
    "distill_relations": ("record_statements", RelatedDistillAnswer),
    "resolve": ("record_verdicts", ResolveAnswer),
    "answer": ("give_answer", GivenAnswer),
}
"""The tool of each task and the shape of its input."""
