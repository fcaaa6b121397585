"""D4: a write without a definite response took effect once or not at all.

A request is open if its broker never answered it, closed its connection, or answered with an error
code after which the outcome is unknown. A client's operation is open if its outcome is `info` or
missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from event_log.properties import INFO_CODES, Violation
from judge.history import Event, History, row_of
from judge.properties.violations import violation, zxid_row


def check(history: History) -> Iterator[Violation | None]:
    """Judge every open request, and every open operation of a client."""
    commits: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for commit, outcome in history.outcomes:
        commits[outcome.request_id][outcome.element].add(commit.zxid)
    for request_id in _open_requests(history):
        zxids = commits.get(request_id, {})
        yield _violation(request_id, history.received[request_id], zxids)
    for operation in history.operations:
        if operation.outcome == "info":
            zxids = {
                element: {commit.zxid for commit, _ in history.effects.get(name, [])}
                for element in operation.requested
                if (name := (operation.api_key, element)) in history.unique_names
            }
            yield _violation(operation.op_id, operation.invoked, zxids)


def _open_requests(history: History) -> Iterator[str]:
    answered = {e["request_id"]: e for e in history.of_kind["answered"]}
    undecided = {
        response.request_id
        for response in history.responses
        if response.error in INFO_CODES or any(code in INFO_CODES for _, code in response.elements)
    }
    for request_id, event in history.received.items():
        if event["route"] != "FORWARD":
            continue
        answer = answered.get(request_id)
        if request_id in undecided or answer is None or _leaves_it_open(answer):
            yield request_id


def _leaves_it_open(answered: Event) -> bool:
    return bool(answered["closed"] or answered["error"] in INFO_CODES)


def _violation(key: str, event: Event, zxids: Mapping[str, set[int]]) -> Violation | None:
    """Return a violation if an element has two commits. `zxids`: the commits of each element."""
    twice = {element: found for element, found in zxids.items() if len(found) > 1}
    if not twice:
        return None
    element = min(twice)
    sentence = f"{key}: {element} got no definite response and took effect more than once"
    rows = [row_of(event), *map(zxid_row, sorted(set().union(*twice.values())))]
    return violation("D4", key, rows, sentence)
