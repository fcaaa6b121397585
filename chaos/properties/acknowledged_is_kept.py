"""D1: what a client was told is done stands in ZooKeeper's log, at its answer's zxid or before."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from chaos.history import Answer, CommittedOutcome, History
from chaos.verdicts import Finding, Property

NONE: Final = 0
DELETE_TOPICS: Final = 20
CREATE_TOPICS: Final = 19


def check(history: History) -> Finding:
    """Judge every element that was answered NONE and was no dry run."""
    committed: dict[tuple[object, str], list[CommittedOutcome]] = defaultdict(list)
    for outcome in history.outcomes:
        if outcome.error != NONE:
            continue  # A committed refusal is no effect.
        committed[outcome.identity, outcome.element].append(outcome)
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
            violation = _violation(answer, element, found, history)
            if violation is not None:
                violations.append(violation)
    return Finding(judged, tuple(violations))


def _violation(
    answer: Answer, element: str, found: list[CommittedOutcome], history: History
) -> str | None:
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
    return None


PROPERTY: Final = Property(
    "D1",
    "acknowledged_is_kept",
    "what was acknowledged is committed, and was so before the answer",
    check,
    argues_from_absence=True,
)
