"""Postgres and Valkey from wheels, and the supervisor behind `memoryos up`."""

from pathlib import Path


def flower_config_path() -> Path:
    """Return where the configuration of Flower lies in this installation."""
    return Path(__file__).with_name("flower_config.py")
