"""An Envelope that arrives more than once has one effect and one outcome.

Every later decision on the same request must agree with the committed outcome.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.error_codes import INFO_CODES, OK_CODES
from judge.history import NONE, Event, History, Identity, row_of
from judge.property import PropertySpec, Violation, listed, zxid_row

SPEC: Final = PropertySpec(
    id="F7",
    name="replayed_envelope_acts_once",
    statement="an Envelope that arrives more than once has one effect and one outcome",
    witnesses=("commits", "events"),
    row="requests whose Envelope arrived more than once",
    key="<broker>/<incarnation>/<sequence>/<element>",
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every identity whose Envelope arrived more than once."""
    received: dict[Identity, int] = defaultdict(int)
    for event in history.of_kind["envelope_received"]:
        received[_identity(event)] += 1
    replayed = {identity for identity, times in received.items() if times > 1}
    yield from (None for _ in replayed)
    decided: dict[Identity, list[Event]] = defaultdict(list)
    for event in history.of_kind["request_decided"]:
        decided[_identity(event)].append(event)
    for (identity, element), commits in history.committed.items():
        if identity in replayed:
            zxids = {commit.zxid for commit, _ in commits}
            first = next((c.zxid for c, outcome in commits if outcome.error == NONE), None)
            yield from _violations(identity, element, zxids, first, decided[identity])


def _identity(event: Event) -> Identity:
    broker_id, incarnation, sequence = event["identity"]
    return broker_id, incarnation, sequence


def _violations(
    identity: Identity, element: str, zxids: set[int], done: int | None, decided: list[Event]
) -> Iterator[Violation]:
    key = "/".join((*map(str, identity), element))
    if len(zxids) > 1:
        sentence = f"{key} was committed more than once, at zxids {listed(zxids)}"
        yield SPEC.extra_violation(key, map(zxid_row, sorted(zxids)), sentence)
        return
    for event in decided:
        error: int = dict(event["elements"]).get(element, NONE)
        is_rejection = error != NONE and error not in INFO_CODES
        if done is not None and event["zxid"] >= done and is_rejection:
            sentence = f"{key} was committed at zxid {done}, but rejected with error code {error}"
            yield SPEC.extra_violation(key, [zxid_row(done), row_of(event)], sentence)
            return


_NO_REJECTION: Final = sql.listed(INFO_CODES | OK_CODES)

INPUTS: Final = ("silver/envelope_received", "silver/request_decided", "gold/committed")
JUDGED: Final = "judged"
SQL: Final = f"""
WITH replayed AS (
  SELECT run, identity FROM envelope_received
  GROUP BY run, identity HAVING count(*) > 1),
decided AS (
  SELECT e.run, e.identity, collect_list(struct(e.file, e.line_number, {sql.row_of("e")} AS row,
    e.zxid, e.elements)) AS decisions
  FROM request_decided e JOIN replayed r ON e.run = r.run AND e.identity = r.identity
  GROUP BY e.run, e.identity),
effects AS (
  SELECT c.run, r.identity, c.element, c.zxids, c.done,
    concat_ws('/', c.broker_id, c.incarnation, c.sequence, c.element) AS name,
    get(filter(array_sort(coalesce(d.decisions, array())),
      x -> x.zxid >= get(c.done, 0) AND exists(x.elements, e -> e.element = c.element
        AND e.error NOT IN ({_NO_REJECTION}))), 0) AS rejected
  FROM committed c JOIN replayed r ON c.run = r.run AND c.broker_id = r.identity.broker_id
    AND c.incarnation = r.identity.incarnation AND c.sequence = r.identity.sequence
  LEFT JOIN decided d ON r.run = d.run AND r.identity = d.identity),
violations AS (
  SELECT run, name AS key,
    CASE WHEN size(zxids) > 1 THEN {sql.zxid_rows("zxids")}
         ELSE array(concat('zxid/', get(done, 0)), rejected.row) END AS rows,
    CASE WHEN size(zxids) > 1
         THEN concat(name, ' was committed more than once, at zxids ', array_join(zxids, ', '))
         ELSE concat(name, ' was committed at zxid ', get(done, 0),
           ', but rejected with error code ',
           get(filter(rejected.elements, e -> e.element = element), 0).error)
    END AS sentence
  FROM effects WHERE size(zxids) > 1 OR rejected IS NOT NULL)
-- `judged` counts identities: 1 for each replayed identity, 0 for each of its violations.
SELECT run, CAST(NULL AS STRING) AS key, CAST(NULL AS ARRAY<STRING>) AS rows,
  CAST(NULL AS STRING) AS sentence, 1 AS judged FROM replayed
UNION ALL
SELECT run, key, rows, sentence, 0 FROM violations
"""
