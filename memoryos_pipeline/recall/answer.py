"""Answer: a context, put before the language model with the question. Recording the exchange is the caller's."""

from dataclasses import dataclass
from uuid import UUID

from memoryos_pipeline.domain.errors import InvalidOutputError, InvalidTurnError
from memoryos_pipeline.domain.text_gate import gate_text
from memoryos_pipeline.recall.context import Context, build_context
from memoryos_pipeline.recall.parts import RecallParts
from memoryos_pipeline.recall.search import Ask
from memoryos_pipeline.store.payments import Payments

NO_GENERATION = "the language model in use does not generate answers; this is the context it would be given"


@dataclass(frozen=True, slots=True)
class Answer:
    """The model's words and the context they rest on; without words, the reason why there are none."""

    text: str | None
    reason: str | None
    context: Context


class _Unkept:
    """A journal that keeps nothing: a repeated question is asked again, of a memory that has moved on, and paid for."""

    def __init__(self, payments: Payments) -> None:
        self.paying = payments.paying

    def find(self, *_: object) -> None:
        return None

    def keep(self, *_: object, **__: object) -> None:
        return None


def answer(
    parts: RecallParts, tenant_id: UUID, ask: Ask, *, token_budget: int, conversation_id: str | None = None
) -> Answer:
    """Answer from what is recalled. Raises ModelError when a generating model fails, or says what no turn can hold."""
    context = build_context(parts, tenant_id, ask, token_budget=token_budget, conversation_id=conversation_id)
    text = parts.language_model.answer(ask.query, context.text, journal=_Unkept(Payments(parts.database, tenant_id)))
    return Answer(None, NO_GENERATION, context) if text is None else Answer(_gated(text), None, context)


def _gated(text: str) -> str:
    try:
        return gate_text(text, "answer")
    except InvalidTurnError as error:
        raise InvalidOutputError(f"the model's answer cannot be used: it {error.problem}") from None
