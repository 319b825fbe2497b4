"""The journal of paid model answers, one small transaction a call, tied to the work row that paid."""

from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

from memoryos_pipeline.domain.budget import Payment
from memoryos_pipeline.domain.work import Lease
from memoryos_pipeline.failpoints import reach
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.payments import Payments

FIND = text(
    "select response from memoryos.llm_call where tenant_id = :tenant_id and task = :task and request_sha256 = :sha"
)
KEEP = text("""
    insert into memoryos.llm_call (tenant_id, request_sha256, task, scope_id, work_id, fence, model, prompt_version,
                                   response, tokens_in, tokens_out)
    values (:tenant_id, :sha, :task, :scope_id, :work_id, :fence, :model, :prompt_version,
            :response, :tokens_in, :tokens_out)
    on conflict do nothing
""").bindparams(bindparam("response", type_=JSONB))


class WorkJournal:
    """Journal of one leased piece of work."""

    def __init__(self, database: Database, lease: Lease) -> None:
        self._database = database
        self._lease = lease

    def find(self, task: str, request_sha256: bytes) -> dict[str, Any] | None:
        """Return the kept answer to this very request of this tenant, or None."""
        with self._database.transaction(self._tenant_id) as connection:
            values = {"tenant_id": self._tenant_id, "task": task, "sha": request_sha256}
            answer: dict[str, Any] | None = connection.execute(FIND, values).scalar()
            return answer

    def keep(  # noqa: PLR0913 - one column each
        self, task: str, request_sha256: bytes, response: dict[str, Any], *, model: str, prompt_version: str,
        tokens_in: int, tokens_out: int,
    ) -> None:  # fmt: skip
        """Keep an answer before it is applied."""
        reach("after_llm", self._lease.kind, work_id=self._lease.work_id, fence=self._lease.fence)
        values = {
            "tenant_id": self._tenant_id, "sha": request_sha256, "task": task, "scope_id": self._lease.scope_id,
            "work_id": self._lease.work_id, "fence": self._lease.fence, "model": model,
            "prompt_version": prompt_version, "response": response, "tokens_in": tokens_in, "tokens_out": tokens_out,
        }  # fmt: skip
        with self._database.transaction(self._tenant_id) as connection:
            connection.execute(KEEP, values)
        reach("after_journal", self._lease.kind, work_id=self._lease.work_id, fence=self._lease.fence)

    def paying(self, provider: str, *, tokens: int, seconds: float) -> AbstractContextManager[Payment]:
        """Stand around one call: within the day's budget and the provider's breaker, settled when it has ended."""
        return Payments(self._database, self._tenant_id).paying(provider, tokens=tokens, seconds=seconds)

    @property
    def _tenant_id(self) -> UUID:
        return self._lease.tenant_id
