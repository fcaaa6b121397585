"""A client whose creations and deletions of topics are recorded as evidence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from bridgehead.cluster import ClientHistory
from bridgehead.cluster.event_lines import EventLines
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.raw_client.asynchronous import ClusterClient


class RecordedClient:
    """Calls brokers through another client. A topic's name may be used only once for each API."""

    def __init__(self, client: ClusterClient, history: ClientHistory) -> None:
        self._client = client
        self._history = history

    async def call(self, broker: int, key: int, version: int, message: Any) -> Any:
        """Return the response's message. Raises OSError or EOFError if there was no response."""
        if key not in (ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS):
            return await self._client.call(broker, key, version, message)
        names = [str(topic.name) for topic in message.topics]
        with self._history.operation(key, names) as operation:
            response = await self._client.call(broker, key, version, message)
            operation.completed(_codes(key, response))
        return response

    def close(self) -> None:
        """Close every connection."""
        self._client.close()


def _codes(key: int, response: Any) -> dict[str, int]:
    results: Iterable[Any] = response.topics if key == ApiKey.CREATE_TOPICS else response.responses
    return {str(result.name): int(result.error_code) for result in results}


# Records a fault in the events of the harness, in every tier.


@contextlib.contextmanager
def recorded_fault(lines: EventLines, action: str, target: int | str) -> Iterator[None]:
    """Record that a fault is injected, and that it is healed. See chaos.fault.Target."""
    fields = {"action": action, "target": str(target)}
    lines.append("fault_injected", **fields)
    try:
        yield
    finally:
        lines.append("fault_healed", **fields)
