"""A node acts as controller only between its election and its resignation.

The term begins with `claim_sent`, not with `became_active`, because an elected candidate commits
even while it loads its image. A claim does not count if another process became active in the same
epoch: then the candidate lost the election.

In KAFKA-4447 and KAFKA-2300, a controller that had resigned still processed queued events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import Boot, History, boot_of, place_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="W7",
    name="controller_acts_in_its_term",
    statement="a node acts as controller only between its election and its resignation",
    witnesses=("events",),
    row="executions, decisions and sent commits of controllers",
    key="<node>/<boot>/<seq>",
    gap_blocks_fail=True,  # the gap may hide the election
)

_BEGINS: Final = ("claim_sent", "became_active")
_BOUNDS: Final = (*_BEGINS, "resigned")
_ACTS: Final = ("execution_started", "request_decided", "commit_sent")


def check(history: History) -> Iterator[Violation | None]:
    """Compare each act with the epochs in which its node is the active controller."""
    kinds = (*_BOUNDS, *_ACTS)
    events = [event for kind in kinds for event in history.of_kind[kind]]
    elected: dict[int, set[Boot]] = defaultdict(set)
    for event in history.of_kind["became_active"]:
        elected[event["epoch"]].add(boot_of(event))
    active: dict[Boot, set[int]] = defaultdict(set)
    for event in sorted(events, key=lambda e: (*boot_of(e), e["seq"])):
        boot, epoch = boot_of(event), event["epoch"]
        epochs = active[boot]
        if event["kind"] in _BEGINS:
            epochs.add(epoch)
        elif event["kind"] == "resigned":
            epochs.discard(epoch)
        elif epoch and epoch in epochs and boot in elected.get(epoch, {boot}):
            yield None
        elif epoch:  # 0: a direct write of a broker below the bridge release
            sentence = (
                f"node {event['node']} wrote {event['kind']} of epoch {epoch}, but was not the "
                "active controller of that epoch"
            )
            yield SPEC.violation(place_of(event), [row_of(event)], sentence)


_KINDS: Final = "\n  UNION ALL ".join(
    f"SELECT run, node, boot, seq, '{kind}' AS kind, epoch FROM {kind}"
    for kind in (*_BOUNDS, *_ACTS)
)

INPUTS: Final = tuple(f"silver/{kind}" for kind in (*_BOUNDS, *_ACTS))
SQL: Final = f"""
WITH seen AS (
  {_KINDS}),
followed AS (
  SELECT *, last_value(CASE WHEN kind IN {_BOUNDS} THEN kind END, true)
    OVER (PARTITION BY run, node, boot, epoch ORDER BY seq) AS state
  FROM seen WHERE kind IN {_BOUNDS} OR epoch <> 0),
elected AS (
  SELECT run, epoch, collect_set(struct(node, boot)) AS boots FROM became_active
  GROUP BY run, epoch),
acts AS (
  SELECT /*+ BROADCAST(e) */ f.*, coalesce(f.state <> 'resigned', false)
    AND coalesce(array_contains(e.boots, struct(f.node, f.boot)), true) AS is_active
  FROM followed f LEFT JOIN elected e ON f.run = e.run AND f.epoch = e.epoch
  WHERE f.kind IN {_ACTS})
SELECT run, CASE WHEN NOT is_active THEN {sql.place_of("acts")} END AS key,
  array({sql.row_of("acts")}) AS rows,
  concat('node ', node, ' wrote ', kind, ' of epoch ', epoch,
    ', but was not the active controller of that epoch') AS sentence
FROM acts
"""
