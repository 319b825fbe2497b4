"""The SQL contract: schema memory_v1 and typed helpers for it."""
