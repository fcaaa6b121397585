"""The zxid of an image never decreases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import Event, History, boot_of, place_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="R2",
    name="image_is_monotonic",
    statement="the zxid of an image never decreases",
    witnesses=("events",),
    row="image_advanced events",
    key="<node>/<boot>/<seq>",
    gap_blocks_pass=False,
)


def check(history: History) -> Iterator[Violation | None]:
    """Compare each image of a boot with the one before it."""
    events = history.of_kind["image_advanced"]
    before: dict[tuple[object, str], Event] = {}
    for event in sorted(events, key=lambda e: (*boot_of(e), e["seq"])):
        key = (boot_of(event), event["side"])
        latest = before.get(key)
        before[key] = event
        if latest is None or event["zxid"] >= latest["zxid"]:
            yield None
            continue
        sentence = (
            f"the {event['side']} image of node {event['node']} went back from zxid "
            f"{latest['zxid']} to {event['zxid']}"
        )
        yield SPEC.violation(place_of(event), [row_of(latest), row_of(event)], sentence)


INPUTS: Final = ("silver/image_advanced",)
SQL: Final = f"""
WITH images AS (
  SELECT run, node, boot, seq, side, zxid, lag(struct(node, boot, seq, zxid))
    OVER (PARTITION BY run, node, boot, side ORDER BY seq) AS before
  FROM image_advanced)
SELECT run, CASE WHEN zxid < before.zxid THEN {sql.place_of("images")} END AS key,
  array({sql.row_of("before")}, {sql.row_of("images")}) AS rows,
  concat('the ', side, ' image of node ', node, ' went back from zxid ', before.zxid, ' to ', zxid)
    AS sentence
FROM images
"""
