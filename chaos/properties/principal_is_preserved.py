"""F1: the controller decides for the very principal, host and listener that the broker saw.

An execution whose `request_received` is not there is not judged: its broker was killed before it
handed that line over, and has answered nobody.
"""

from __future__ import annotations

from typing import Final

from chaos.history import History, place_of, row_of
from chaos.properties.breach import violation
from chaos.verdicts import Finding, Property

FIELDS: Final = (
    *("principal", "token_authenticated", "client_host", "listener", "security_protocol"),
    *("client_id", "api_key", "api_version"),
)


def check(history: History) -> Finding:
    """Judge every execution."""
    judged = 0
    violations = []
    for event in history.of_kind["execution_started"]:
        received = history.received.get(event["request_id"])
        if received is None:
            continue
        judged += 1
        changed = [name for name in FIELDS if event[name] != received[name]]
        if changed:
            name = changed[0]
            sentence = (
                f"{event['request_id']}: {name} was {received[name]!r} at broker "
                f"{received['node']} and {event[name]!r} at controller {event['node']}"
            )
            rows = [row_of(received), row_of(event)]
            violations.append(violation("F1", place_of(event), rows, sentence))
    return Finding(judged, tuple(violations))


PROPERTY: Final = Property("F1", check)
