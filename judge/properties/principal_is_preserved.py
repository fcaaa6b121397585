"""F1: the controller decides for the principal, host and listener that the broker saw.

An execution without a `request_received` is not judged: the client's broker was killed before it
wrote that event, so the client got no response.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from event_log.properties import Violation
from judge.history import History, place_of, row_of
from judge.properties.violations import violation

FIELDS: Final = (
    *("principal", "token_authenticated", "client_host", "listener", "security_protocol"),
    *("client_id", "api_key", "api_version"),
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every execution."""
    for event in history.of_kind["execution_started"]:
        received = history.received.get(event["request_id"])
        if received is None:
            continue
        name = next((name for name in FIELDS if event[name] != received[name]), None)
        if name is None:
            yield None
            continue
        seen, decided = (_shown(each[name]) for each in (received, event))
        sentence = (
            f"{event['request_id']}: {name} was {seen} at broker {received['node']}, but "
            f"{decided} at controller {event['node']}"
        )
        yield violation("F1", place_of(event), [row_of(received), row_of(event)], sentence)


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
