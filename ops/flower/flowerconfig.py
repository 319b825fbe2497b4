"""Flower's configuration for an installation of its own: the one `memoryos up` uses."""

from memoryos_pipeline.embedded.flower_config import *  # noqa: F403
