"""What recall needs of the parts of a process; the stages' Parts have it."""

from typing import Protocol

from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.models.protocols import Embedder, LanguageModel
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.hot_copy import HotCopies


class RecallParts(Protocol):
    """The database, the models and the policy, read only."""

    @property
    def database(self) -> Database: ...
    @property
    def embedder(self) -> Embedder: ...
    @property
    def language_model(self) -> LanguageModel: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def hot_copies(self) -> HotCopies | None: ...
