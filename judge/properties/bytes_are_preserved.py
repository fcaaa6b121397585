"""F2: the controller executes the client's bytes, and the broker gets the controller's bytes.

Digests are compared; messages with secrets have none (event_log/digests.py). An execution without a
`request_received` and a response without a `request_decided` are not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import Event, History, place_of, row_of
from judge.properties.violations import violation


def check(history: History) -> Iterator[Violation | None]:
    """Judge every execution, and every response that a broker got."""
    yield from _requests(history)
    yield from _responses(history)


def _requests(history: History) -> Iterator[Violation | None]:
    for event in history.of_kind["execution_started"]:
        received = history.received.get(event["request_id"])
        if received is None or None in (received["body_sha256"], event["body_sha256"]):
            continue
        if event["body_sha256"] == received["body_sha256"]:
            yield None
            continue
        sentence = (
            f"{event['request_id']}: controller {event['node']} executed bytes that differ from "
            f"those that broker {received['node']} received"
        )
        yield violation("F2", place_of(event), [row_of(received), row_of(event)], sentence)


def _responses(history: History) -> Iterator[Violation | None]:
    sent: dict[str, list[Event]] = defaultdict(list)
    for event in history.of_kind["request_decided"]:
        if event["answer_sha256"] is not None:
            sent[event["request_id"]].append(event)
    for event in history.of_kind["forward_answered"]:
        decisions = sent.get(event["request_id"])
        if decisions is None or event["answer_sha256"] is None:
            continue
        if event["answer_sha256"] in {each["answer_sha256"] for each in decisions}:
            yield None
            continue
        sentence = (
            f"{event['request_id']}: broker {event['node']} got bytes that no controller sent"
        )
        rows = [*map(row_of, decisions), row_of(event)]
        yield violation("F2", place_of(event), rows, sentence)
