"""D1: what a client was told is done stands in ZooKeeper's log, at its answer's zxid or before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from typing import Final

from chaos.history import TOPICS, Answer, CommittedOutcome, History
from chaos.verdicts import Finding, Property

NONE: Final = 0
TOPIC_RESOURCE, BROKER_RESOURCE = "2", "4"
CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37
ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 33, 44


def check(history: History) -> Finding:
    """Judge every element that was answered NONE and was no dry run."""
    committed: dict[tuple[object, str], list[CommittedOutcome]] = defaultdict(list)
    for outcome in history.outcomes:
        if outcome.error != NONE:
            continue  # A committed refusal is no effect.
        committed[outcome.identity, outcome.element].append(outcome)
    written = {
        transaction.zxid: {operation.path for operation in transaction.operations}
        for transaction in history.transactions
        if not transaction.failed
    }
    judged = 0
    violations = []
    for answer in history.answers:
        if answer.validate_only:
            continue
        for element, error in answer.elements:
            if error != NONE:
                continue
            judged += 1
            found = committed[answer.identity, element]
            violation = _violation(answer, element, found, history, written)
            if violation is not None:
                violations.append(violation)
    return Finding(judged, tuple(violations))


def _violation(
    answer: Answer,
    element: str,
    found: list[CommittedOutcome],
    history: History,
    written: Mapping[int, Set[str]],
) -> str | None:
    """Judge one element; `written` are the paths that each transaction touched."""
    if not found:
        if answer.api_key == DELETE_TOPICS:
            return None  # Somebody else's deletion was joined; D5 judges that it is gone.
        return f"{answer.request_id}: {element} was acknowledged and never committed"
    if all(outcome.zxid > answer.zxid for outcome in found):
        return f"{answer.request_id}: {element} was acknowledged before it was committed"
    if answer.api_key == CREATE_TOPICS:
        lives = history.topics.get(element, ())
        if not any(life.creator == answer.identity for life in lives):
            return f"{answer.request_id}: topic {element} was acknowledged and is not there"
    path = _effect(answer.api_key, element)
    if path is not None and not any(path in written[outcome.zxid] for outcome in found):
        return f"{answer.request_id}: {element} was acknowledged and {path} was not written"
    return None


def _effect(api_key: int, element: str) -> str | None:
    """Return the znode that the multi of this element's outcome must have written."""
    if api_key == CREATE_PARTITIONS:
        return f"{TOPICS}{element}"
    if api_key not in (ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS):
        return None
    resource_type, _, name = element.partition(":")
    if resource_type == TOPIC_RESOURCE:
        return f"/config/topics/{name}"
    if resource_type == BROKER_RESOURCE:
        return f"/config/brokers/{int(name) if name else '<default>'}"
    return None  # A broker's log levels are in no znode.


PROPERTY: Final = Property(
    "D1",
    "acknowledged_is_kept",
    "what was acknowledged is committed, and was so before the answer",
    check,
    argues_from_absence=True,
)
