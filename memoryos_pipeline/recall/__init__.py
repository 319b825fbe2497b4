"""How a question becomes a context."""
