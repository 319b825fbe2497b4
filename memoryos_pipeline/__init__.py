"""Long-term memory for LLM agents: what a memory is and how it changes."""

from importlib.metadata import version

__version__ = version("memoryos-pipeline")
