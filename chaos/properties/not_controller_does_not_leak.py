"""F5: no client of a forwarded request is told NOT_CONTROLLER (KAFKA-12677).

Where routing decided so (route NOT_CONTROLLER: an old client, or forwarding switched off), it may.
"""

from __future__ import annotations

from typing import Final

from chaos.history import History, row_of
from chaos.properties.breach import violation
from chaos.verdicts import Finding, Property

NOT_CONTROLLER: Final = 41


def check(history: History) -> Finding:
    """Judge every answer to a request that was to be forwarded."""
    relayed = {
        answer.request_id: answer
        for answer in history.answers
        if answer.error == NOT_CONTROLLER
        or any(code == NOT_CONTROLLER for _, code in answer.elements)
    }
    judged = 0
    violations = []
    for event in history.of_kind["answered"]:
        if event["route"] != "FORWARD" or event["closed"]:
            continue
        judged += 1
        answer = relayed.get(event["request_id"])
        if event["error"] != NOT_CONTROLLER and answer is None:
            continue
        rows = [row_of(event)] + ([row_of(answer.decided)] if answer else [])
        sentence = f"{event['request_id']}: the client was told NOT_CONTROLLER"
        violations.append(violation("F5", event["request_id"], rows, sentence))
    return Finding(judged, tuple(violations))


PROPERTY: Final = Property("F5", check)
