"""D4: what nobody was told the end of took effect once or not at all, and the log says which.

A request is open when its broker never answered it, closed its connection, or answered with a code
that decides nothing; a client's operation when it says so itself, or never heard.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from chaos.evidence.reading import Event
from chaos.history import History, row_of
from chaos.properties.breach import violation, zxid
from chaos.verdicts import Finding, Property
from event_log.promises import INFO_CODES, Violation


def _commits_by_request(history: History) -> dict[str, dict[str, set[int]]]:
    """Return the zxids of each element of each request."""
    found: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for commit, outcome in history.outcomes:
        found[outcome.request_id][outcome.element].add(commit.zxid)
    return found


def _open_requests(history: History) -> Iterator[str]:
    answered = {e["request_id"]: e for e in history.of_kind["answered"]}
    undecided = {
        answer.request_id
        for answer in history.answers
        if answer.error in INFO_CODES or any(code in INFO_CODES for _, code in answer.elements)
    }
    for request_id, event in history.received.items():
        if event["route"] != "FORWARD":
            continue
        answer = answered.get(request_id)
        if request_id in undecided or answer is None or _decides_nothing(answer):
            yield request_id


def _decides_nothing(answered: Event) -> bool:
    return bool(answered["closed"] or answered["error"] in INFO_CODES)


def check(history: History) -> Finding:
    """Judge every open request, and every open operation of a client."""
    judged: list[Violation | None] = []
    commits = _commits_by_request(history)
    for request_id in _open_requests(history):
        twice = {e: z for e, z in commits.get(request_id, {}).items() if len(z) > 1}
        rows = [row_of(history.received[request_id])]
        judged.append(_breach(request_id, rows, twice))
    for operation in history.operations:
        if operation.outcome != "info":
            continue
        twice = {}
        for element in operation.asked:
            name = (operation.api_key, element)
            zxids = {commit.zxid for commit, _ in history.effects.get(name, [])}
            if name in history.named_once and len(zxids) > 1:
                twice[element] = zxids
        judged.append(_breach(operation.op_id, [row_of(operation.invoked)], twice))
    return Finding(len(judged), tuple(each for each in judged if each is not None))


def _breach(key: str, rows: list[str], twice: dict[str, set[int]]) -> Violation | None:
    if not twice:
        return None
    zxids = sorted(set().union(*twice.values()))
    element = min(twice)
    sentence = f"{key}: nobody was told its end, and {element} took effect {len(zxids)} times"
    return violation("D4", key, [*rows, *map(zxid, zxids)], sentence)


PROPERTY: Final = Property("D4", check)
