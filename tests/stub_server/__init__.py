"""A stand-in for the Anthropic Messages API on loopback."""
