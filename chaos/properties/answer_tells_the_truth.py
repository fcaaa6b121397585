"""D5: an error code agrees with the state between the decision's image and the answer.

EXISTS: the topic existed and another request had made it. UNKNOWN: it did not exist throughout.
NONE to a creation: this request made it. NONE to a deletion: the topic was there and is gone.
"""

from __future__ import annotations

from typing import Final

from chaos.history import Answer, History, Lifetime, row_of
from chaos.properties.breach import violation, zxid
from chaos.verdicts import Finding, Property

NONE: Final = 0
UNKNOWN_TOPIC: Final = 3
TOPIC_EXISTS: Final = 36
CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37


def _wrong(
    answer: Answer, name: str, error: int, lives: tuple[Lifetime, ...], since: int
) -> str | None:
    """Judge one element; `since` is the zxid of the state that its code was decided on."""
    alive = [life for life in lives if life.born <= answer.zxid and life.died > since]
    if answer.api_key == CREATE_TOPICS and error == TOPIC_EXISTS:
        if not alive:
            return "TOPIC_ALREADY_EXISTS and did not exist"
        if all(life.creator == answer.identity for life in alive):
            return "TOPIC_ALREADY_EXISTS about its own success"
    if answer.api_key in (DELETE_TOPICS, CREATE_PARTITIONS) and error == UNKNOWN_TOPIC:
        throughout = [life for life in alive if life.born <= since and life.died > answer.zxid]
        if throughout:
            return f"UNKNOWN_TOPIC_OR_PARTITION and existed since zxid {throughout[0].born}"
    if answer.api_key == CREATE_TOPICS and error == NONE:  # noqa: SIM102  # one claim each
        if not any(life.creator == answer.identity for life in alive):
            return "NONE and another request had made it, or none"
    if answer.api_key == DELETE_TOPICS and error == NONE and not name.startswith("id:"):
        if not lives:
            return "NONE and never existed"
        if any(life.born <= since and life.died > answer.zxid for life in lives):
            return "NONE and was still there"
    return None


def check(history: History) -> Finding:
    """Judge every answered element of the topic APIs whose code says something of the state."""
    judged = 0
    violations = []
    for answer in history.answers:
        if answer.validate_only:
            continue
        for element, error in answer.elements:
            says_something = (answer.api_key, error) in _CLAIMS
            if not says_something:
                continue
            judged += 1
            # A resend, on a later image, is answered with what was committed for the first copy.
            found = history.committed.get((answer.identity, element))
            settled = found[0][0].zxid if found else answer.image_zxid + 1
            since = min(answer.image_zxid, settled - 1)
            lives = history.topics.get(element, ())
            wrong = _wrong(answer, element, error, lives, since)
            if wrong is None:
                continue
            rows = [row_of(answer.answered), row_of(answer.decided)]
            rows += [zxid(life.born) for life in lives]
            key = f"{answer.request_id}/{element}"
            sentence = f"{answer.request_id}: {element} was answered {wrong}"
            violations.append(violation("D5", key, rows, sentence))
    return Finding(judged, tuple(violations))


_CLAIMS: Final = frozenset(
    {
        (CREATE_TOPICS, NONE),
        (CREATE_TOPICS, TOPIC_EXISTS),
        (DELETE_TOPICS, UNKNOWN_TOPIC),
        (DELETE_TOPICS, NONE),
        (CREATE_PARTITIONS, UNKNOWN_TOPIC),
    }
)

PROPERTY: Final = Property("D5", check)
