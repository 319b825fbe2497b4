"""Postgres, and only Postgres: transactions, the work ledger, queries."""
