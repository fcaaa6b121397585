"""F5: no client gets NOT_CONTROLLER for a forwarded request (KAFKA-12677).

For a request with the route NOT_CONTROLLER the error is correct: forwarding is switched off, or
only the controller's broker handles this API (or, on a drafted listener, this version of it).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from event_log.properties import Violation
from judge.history import History, row_of
from judge.properties.violations import violation

NOT_CONTROLLER: Final = 41


def check(history: History) -> Iterator[Violation | None]:
    """Judge every response to a request that was to be forwarded."""
    relayed = {
        response.request_id: response
        for response in history.responses
        if response.error == NOT_CONTROLLER
        or any(code == NOT_CONTROLLER for _, code in response.elements)
    }
    for event in history.of_kind["answered"]:
        if event["route"] != "FORWARD" or event["closed"]:
            continue
        response = relayed.get(event["request_id"])
        if event["error"] != NOT_CONTROLLER and response is None:
            yield None
            continue
        rows = [row_of(event)] + ([row_of(response.decided)] if response else [])
        sentence = f"{event['request_id']}: the client got NOT_CONTROLLER"
        yield violation("F5", event["request_id"], rows, sentence)
