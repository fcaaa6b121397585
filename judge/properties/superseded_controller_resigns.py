"""A node resigns as controller before it applies metadata of a later controller.

Two nodes that both act as controller confuse clients and operators, even if only one can write.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import Boot, Event, History, boot_of, place_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="K7",
    name="superseded_controller_resigns",
    statement="a node resigns as controller before it applies metadata of a later controller",
    witnesses=("events",),
    row="images of brokers",
    key="<node>/<boot>/<seq>",
    gap_blocks_fail=True,  # the gap may hide the resignation
)


def check(history: History) -> Iterator[Violation | None]:
    """Compare each image of a broker with the epochs in which its node is the controller."""
    kinds = ("became_active", "resigned", "image_advanced")
    events = [event for kind in kinds for event in history.of_kind[kind]]
    active: dict[Boot, dict[int, Event]] = defaultdict(dict)  # became_active by epoch
    for event in sorted(events, key=lambda e: (*boot_of(e), e["seq"])):
        terms, epoch = active[boot_of(event)], event["epoch"]
        if event["kind"] == "became_active":
            terms[epoch] = event
        elif event["kind"] == "resigned":
            terms.pop(epoch, None)
        elif event["side"] == "broker":
            yield _image(event, terms)


def _image(image: Event, active: dict[int, Event]) -> Violation | None:
    held = max((epoch for epoch in active if epoch < image["epoch"]), default=None)
    if held is None:
        return None
    return SPEC.violation(
        place_of(image),
        [row_of(active[held]), row_of(image)],
        f"broker {image['node']} applied metadata of epoch {image['epoch']}, but had not resigned "
        f"as controller of epoch {held}",
    )


INPUTS: Final = ("silver/became_active", "silver/resigned", "silver/image_advanced")
SQL: Final = f"""
WITH active AS (
  SELECT a.run, a.node, a.boot, a.epoch, a.seq, min(r.seq) AS until
  FROM became_active a LEFT JOIN resigned r ON a.run = r.run AND a.node = r.node
    AND a.boot = r.boot AND a.epoch = r.epoch AND a.seq < r.seq
  GROUP BY a.run, a.node, a.boot, a.epoch, a.seq),
terms_of AS (
  SELECT run, node, boot, array_sort(collect_list(struct(epoch, seq, until, node, boot))) AS own
  FROM active GROUP BY run, node, boot),
images AS (
  SELECT /*+ BROADCAST(t) */ e.run, e.node, e.boot, e.seq, e.epoch,
    filter(t.own, x -> x.epoch < e.epoch AND x.seq < e.seq
      AND coalesce(e.seq < x.until, true)) AS held
  FROM image_advanced e
  LEFT JOIN terms_of t ON e.run = t.run AND e.node = t.node AND e.boot = t.boot
  WHERE e.side = 'broker'),
judged AS (SELECT run, node, boot, seq, epoch, get(held, size(held) - 1) AS last FROM images)
SELECT run, CASE WHEN last IS NOT NULL THEN {sql.place_of("judged")} END AS key,
  array({sql.row_of("last")}, {sql.row_of("judged")}) AS rows,
  concat('broker ', node, ' applied metadata of epoch ', epoch,
    ', but had not resigned as controller of epoch ', last.epoch) AS sentence
FROM judged
"""
