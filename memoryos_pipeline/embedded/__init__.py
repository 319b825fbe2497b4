"""Postgres and Valkey from wheels, and the supervisor behind `memoryos up`."""
