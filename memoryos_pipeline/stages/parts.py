"""What a stage is given: the database, the models and the policy. Built once a process by pipeline.py."""

from dataclasses import dataclass

from memoryos_pipeline.domain.policies import DEFAULT, Policy
from memoryos_pipeline.models.protocols import Embedder, LanguageModel
from memoryos_pipeline.store.database import Database


@dataclass(frozen=True)
class Parts:
    """The concrete parts of one process. A stage is `stage(parts, lease)`: load, think, save."""

    database: Database
    embedder: Embedder
    language_model: LanguageModel
    policy: Policy = DEFAULT
    max_attempts: int = 5
