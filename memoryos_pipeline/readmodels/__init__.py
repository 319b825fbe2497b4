"""The SQL contract: schema memory_v1 and typed reads of it."""
