"""F2: what the controller decides is what the client wrote, and what is relayed is its answer.

Compared are digests; messages that hold secrets have none (event_log/digests.py). An execution
whose `request_received` is not there, and an answer without a `request_decided`, are not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from chaos.history import Event, History, place_of, row_of
from chaos.properties.breach import violation
from chaos.verdicts import Finding, Property
from event_log.promises import Violation


def check(history: History) -> Finding:
    """Judge every execution, and every answer that a broker got."""
    judged = [*_executions(history), *_answers(history)]
    return Finding(len(judged), tuple(each for each in judged if each is not None))


def _executions(history: History) -> Iterator[Violation | None]:
    for event in history.of_kind["execution_started"]:
        received = history.received.get(event["request_id"])
        if received is None or None in (received["body_sha256"], event["body_sha256"]):
            continue
        if event["body_sha256"] == received["body_sha256"]:
            yield None
            continue
        sentence = (
            f"{event['request_id']}: the bytes that broker {received['node']} read are not those "
            f"that controller {event['node']} decided"
        )
        yield violation("F2", place_of(event), [row_of(received), row_of(event)], sentence)


def _answers(history: History) -> Iterator[Violation | None]:
    given: dict[str, list[Event]] = defaultdict(list)
    for event in history.of_kind["request_decided"]:
        if event["answer_sha256"] is not None:
            given[event["request_id"]].append(event)
    for event in history.of_kind["forward_answered"]:
        decisions = given.get(event["request_id"])
        if decisions is None or event["answer_sha256"] is None:
            continue
        if event["answer_sha256"] in {each["answer_sha256"] for each in decisions}:
            yield None
            continue
        sentence = (
            f"{event['request_id']}: the answer that broker {event['node']} got is none that a "
            "controller gave"
        )
        rows = [*map(row_of, decisions), row_of(event)]
        yield violation("F2", place_of(event), rows, sentence)


PROPERTY: Final = Property("F2", check)
