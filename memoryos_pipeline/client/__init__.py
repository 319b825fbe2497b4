"""The SDK: an HTTP client and a queue publisher with an outbox."""
