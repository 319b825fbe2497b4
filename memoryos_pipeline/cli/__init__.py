"""The `memoryos` command."""
