"""Celery's Redis transport, with one difference: an entry of a queue that is no message is dropped, not died of."""

from typing import Any

import structlog
from kombu.transport.redis import Channel, Transport

log = structlog.get_logger("workers.transport")

NOT_A_MESSAGE = (ValueError, KeyError, TypeError, AttributeError)
"""What reading an entry in parts raises when it was not written by a Celery publisher."""


class SteadyChannel(Channel):  # type: ignore[misc]
    """A channel that survives entries that are not JSON."""

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)
        except ValueError as error:  # the entry was taken off the queue before it was read
            log.warning("message_dropped", code="unreadable_entry", error=type(error).__name__)
            return None


class SteadyTransport(Transport):  # type: ignore[misc]
    """A transport that hands on whole messages only."""

    Channel = SteadyChannel

    def _deliver(self, message: Any, queue: str) -> None:
        if self._is_whole(message):
            super()._deliver(message, queue)
        else:
            log.warning("message_dropped", code="incomplete_entry")

    def _is_whole(self, entry: Any) -> bool:
        """Tell whether everything that receiving, keeping and restoring a message reads from it is there."""
        try:
            message = self.Channel.Message(entry, channel=self.channels[0])
            routed = message.delivery_info["exchange"], message.delivery_info["routing_key"]
            read = *routed, message.delivery_tag, entry["body"], entry["headers"].get("task", "")
            return all(isinstance(part, str) for part in read)
        except NOT_A_MESSAGE:
            return False
