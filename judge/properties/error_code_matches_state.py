"""An error code agrees with the topic's state between the decision's image and the response.

TOPIC_ALREADY_EXISTS requires a moment at which the topic existed, created by another request.
UNKNOWN_TOPIC_OR_PARTITION requires a moment at which the topic did not exist. NONE for
a creation requires that this request created the topic. NONE for a deletion requires that a topic
of this name existed, and that it was gone at the response.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge.history import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    NONE,
    History,
    Lifetime,
    Response,
    row_of,
)
from judge.property import PropertySpec, Violation, zxid_row

SPEC: Final = PropertySpec(
    id="D5",
    name="error_code_matches_state",
    statement="the error code about a topic matches a state that the topic had between the "
    "decision and the response",
    witnesses=("commits", "events"),
    row="elements of CreateTopics, DeleteTopics and CreatePartitions whose error code depends "
    "on whether the topic exists; dry runs do not count",
    key="<request id>/<element>",
    gap_blocks_fail=True,
)

UNKNOWN_TOPIC, TOPIC_EXISTS = 3, 36
# The pairs of API and error code that depend on whether the topic exists.
_CLAIMS: Final = frozenset(
    {
        (CREATE_TOPICS, NONE),
        (CREATE_TOPICS, TOPIC_EXISTS),
        (DELETE_TOPICS, UNKNOWN_TOPIC),
        (DELETE_TOPICS, NONE),
        (CREATE_PARTITIONS, UNKNOWN_TOPIC),
    }
)


def _wrong(
    response: Response, name: str, error: int, lives: tuple[Lifetime, ...], since: int
) -> str | None:
    """Judge one element; `since` is the zxid of the state on which its code was decided."""
    alive = [life for life in lives if life.born <= response.zxid and life.died > since]
    throughout = [life for life in lives if life.born <= since and life.died > response.zxid]
    if error == TOPIC_EXISTS:
        if not alive:
            return "TOPIC_ALREADY_EXISTS, but did not exist"
        if all(life.creator == response.identity for life in alive):
            return "TOPIC_ALREADY_EXISTS, but this request had created it"
    elif error == UNKNOWN_TOPIC and throughout:
        return f"UNKNOWN_TOPIC_OR_PARTITION, but existed since zxid {throughout[0].born}"
    elif response.api_key == CREATE_TOPICS:
        if not any(life.creator == response.identity for life in alive):
            return "NONE, but this request did not create it"
    elif error == NONE and not name.startswith("id:"):
        if not lives:
            return "NONE for its deletion, but never existed"
        if not alive:
            return "NONE for its deletion, but did not exist any more"
        if throughout:
            return "NONE for its deletion, but still existed"
    return None


def check(history: History) -> Iterator[Violation | None]:
    """Judge every element of the topic APIs whose code depends on whether the topic exists."""
    for response in history.responses:
        if response.validate_only:
            continue
        for element, error in response.elements:
            if (response.api_key, error) not in _CLAIMS:
                continue
            # The response to a resend repeats the outcome of the first execution.
            commits = history.committed.get((response.identity, element))
            committed = commits[0][0].zxid if commits else response.image_zxid + 1
            since = min(response.image_zxid, committed - 1)
            lives = history.topics.get(element, ())
            wrong = _wrong(response, element, error, lives, since)
            if wrong is None:
                yield None
                continue
            rows = [row_of(response.responded), row_of(response.decided)]
            rows += [zxid_row(life.born) for life in lives]
            sentence = f"{response.request_id}: {element} got {wrong}"
            yield SPEC.violation(f"{response.request_id}/{element}", rows, sentence)


INPUTS: Final = ("gold/decisions", "gold/topic_lives")
SQL: Final = """
WITH claims AS (
  SELECT *, least(image_zxid, coalesce(get(committed, 0), image_zxid + 1) - 1) AS since
  FROM decisions WHERE NOT validate_only
    AND ((api_key = 19 AND error IN (0, 36)) OR (api_key = 20 AND error IN (0, 3))
      OR (api_key = 37 AND error = 3))),
known AS (
  SELECT c.*, coalesce(l.lives, array()) AS lives,
    filter(coalesce(l.lives, array()), x -> x.born <= c.zxid AND x.died > c.since) AS alive,
    filter(coalesce(l.lives, array()), x -> x.born <= c.since AND x.died > c.zxid) AS throughout
  FROM claims c LEFT JOIN topic_lives l ON c.run = l.run AND c.element = l.topic),
judged AS (
  SELECT *, CASE
    WHEN api_key = 19 AND error = 36 AND size(alive) = 0
      THEN 'TOPIC_ALREADY_EXISTS, but did not exist'
    WHEN api_key = 19 AND error = 36 AND forall(alive, x -> x.creator <=> identity)
      THEN 'TOPIC_ALREADY_EXISTS, but this request had created it'
    WHEN error = 3 AND size(throughout) > 0
      THEN concat('UNKNOWN_TOPIC_OR_PARTITION, but existed since zxid ', get(throughout, 0).born)
    WHEN api_key = 19 AND error = 0 AND NOT exists(alive, x -> x.creator <=> identity)
      THEN 'NONE, but this request did not create it'
    WHEN api_key = 20 AND error = 0 AND element NOT LIKE 'id:%' AND size(lives) = 0
      THEN 'NONE for its deletion, but never existed'
    WHEN api_key = 20 AND error = 0 AND element NOT LIKE 'id:%' AND size(alive) = 0
      THEN 'NONE for its deletion, but did not exist any more'
    WHEN api_key = 20 AND error = 0 AND element NOT LIKE 'id:%' AND size(throughout) > 0
      THEN 'NONE for its deletion, but still existed'
    END AS wrong
  FROM known)
SELECT run, CASE WHEN wrong IS NOT NULL THEN concat(request_id, '/', element) END AS key,
  concat(array(responded_row, decided_row), transform(lives, x -> concat('zxid/', x.born))) AS rows,
  concat(request_id, ': ', element, ' got ', wrong) AS sentence
FROM judged
"""
