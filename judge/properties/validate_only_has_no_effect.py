"""A request with validate_only commits nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import History, Identity, identity_of, place_of, row_of
from judge.property import PropertySpec, Violation, listed, zxid_row

SPEC: Final = PropertySpec(
    id="D9",
    name="validate_only_has_no_effect",
    statement="a request with validate_only commits nothing",
    witnesses=("commits", "events"),
    row="decisions with validate_only",
    key="<node>/<boot>/<seq>",
)


def check(history: History) -> Iterator[Violation | None]:
    """Look for commits of every request that was only to be validated."""
    written: dict[Identity, set[int]] = defaultdict(set)
    for commit, outcome in history.outcomes:
        written[identity_of(outcome)].add(commit.zxid)
    for event in history.of_kind["request_decided"]:
        if not event["validate_only"]:
            continue
        broker_id, incarnation, sequence = event["identity"]
        zxids = sorted(written.get((broker_id, incarnation, sequence), ()))
        if not zxids:
            yield None
            continue
        rows = [row_of(event), *map(zxid_row, zxids)]
        sentence = (
            f"{event['request_id']} was only to be validated, but was committed at zxids "
            f"{listed(zxids)}"
        )
        yield SPEC.violation(place_of(event), rows, sentence)


INPUTS: Final = ("silver/request_decided", "silver/outcomes")
SQL: Final = f"""
WITH validated AS (
  SELECT run, node, boot, seq, request_id, identity FROM request_decided
  WHERE validate_only),
written AS (
  SELECT v.run, v.node, v.boot, v.seq, v.request_id,
    array_sort(collect_set(o.zxid)) AS zxids
  FROM validated v LEFT JOIN outcomes o ON v.run = o.run
    AND v.identity.broker_id = o.broker_id AND v.identity.incarnation = o.incarnation
    AND v.identity.sequence = o.sequence
  GROUP BY v.run, v.node, v.boot, v.seq, v.request_id)
SELECT run, CASE WHEN size(zxids) > 0 THEN {sql.place_of("written")} END AS key,
  concat(array({sql.row_of("written")}), {sql.zxid_rows("zxids")}) AS rows,
  concat(request_id, ' was only to be validated, but was committed at zxids ',
    array_join(zxids, ', ')) AS sentence
FROM written
"""
