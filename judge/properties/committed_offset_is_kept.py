"""For each offset, a coordinator reports the last acknowledged commit or a later one.

Here an offset is the committed offset of one group for one partition. A coordinator reports its
offsets after it has loaded them, and when it stops. For each offset, the report must have the last
commit that was acknowledged in the report's leader epoch or an earlier epoch. Instead, the report
may have a later commit that a killed coordinator wrote to the log but never acknowledged. An offset
whose last change was a deletion or expiry is not judged: Kafka does not wait until the tombstone is
replicated, so the offset may come back. A report consists of several events. It is ignored if the
last of these events is missing. A coordinator that restarts while there is no controller keeps its
leader epoch. So commits of the same node and leader epoch count only if they precede the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from judge import sql
from judge.history import Event, History, place_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="D11",
    name="committed_offset_is_kept",
    statement="the report of a coordinator has, for each group and partition, the last "
    "acknowledged commit or a later one",
    witnesses=("events",),
    row="committed offsets, once for each report of their coordinator, except offsets whose "
    "last change was a deletion or expiry",
    key="<node>/<boot>/<seq>/<group>/<topic>-<partition>",
    gap_blocks_fail=True,  # the gap may hide a deletion
)

OffsetsPartition = tuple[str, int]  # topic id, partition of __consumer_offsets
Key = tuple[str, str]  # group, topic and partition: orders-0
Report = tuple[str, str, str, int, int]  # node, boot, topic id, partition, leader epoch


class _Change(NamedTuple):
    order: tuple[int, int, str, str, int]
    offset: int | None  # None: removed
    event: Event


def check(history: History) -> Iterator[Violation | None]:
    """Look up the last commits in each report."""
    changes = _changes(history)
    pages: dict[Report, list[Event]] = {}
    for event in history.of_kind["offsets_held"]:
        pages.setdefault(_report(event), []).append(event)
    for events in pages.values():
        last = next((entry for entry in events if entry["is_last"]), None)
        if last is None:
            continue
        held = _held(events)
        for key, of_key in changes.get(_partition(last), {}).items():
            included = [commit for commit in of_key if _is_included(commit.event, last)]
            change = max(included, default=None)
            if change is None or change.offset is None:
                continue
            wrong = _wrong(change, held.get(key))
            if wrong is None:
                yield None
                continue
            rows = [row_of(change.event), row_of(last)]
            sentence = (
                f"group {key[0]}, {key[1]}: {change.offset} was committed, "
                f"but node {last['node']} has {wrong}"
            )
            yield SPEC.violation(f"{place_of(last)}/{key[0]}/{key[1]}", rows, sentence)


def _report(event: Event) -> Report:
    return (event["node"], event["boot"], *_partition(event), event["leader_epoch"])


def _partition(event: Event) -> OffsetsPartition:
    return event["topic_id"], event["partition_index"]


def _is_included(change: Event, report: Event) -> bool:
    """Return whether a report must include a change."""
    if change["leader_epoch"] != report["leader_epoch"] or change["node"] != report["node"]:
        return bool(change["leader_epoch"] <= report["leader_epoch"])
    return bool(change["mono_ns"] <= report["mono_ns"])


def _changes(history: History) -> Mapping[OffsetsPartition, Mapping[Key, list[_Change]]]:
    """Return all commits and removals of each offset."""
    changes: dict[OffsetsPartition, dict[Key, list[_Change]]] = {}
    for kind in ("offsets_committed", "offsets_removed"):
        for event in history.of_kind[kind]:
            of_partition = changes.setdefault(_partition(event), {})
            time = event["leader_epoch"], event["mono_ns"]
            order = *time, event["node"], event["boot"], int(event["seq"])
            for entry in event["offsets"]:
                topic, number, *offset = entry.split(":")
                change = _Change(order, int(offset[0]) if offset else None, event)
                of_partition.setdefault((event["group_id"], f"{topic}-{number}"), []).append(change)
    return changes


def _held(pages: list[Event]) -> Mapping[Key, tuple[int, int]]:
    """Return the reported offset, and the log offset of its record."""
    entries = (offset.split(":", 4) for page in pages for offset in page["offsets"])
    return {
        (group, f"{topic}-{number}"): (int(offset), int(log_offset))
        for topic, number, offset, log_offset, group in entries
    }


def _wrong(change: _Change, held: tuple[int, int] | None) -> str | None:
    if held is None:
        return "no offset"
    offset, log_offset = held
    committed_at = change.event["log_offset"]
    if log_offset < committed_at:
        return f"{offset}, which is older"
    if log_offset == committed_at and offset != change.offset:
        return f"{offset}, which was not committed"
    return None


_SAME_PARTITION: Final = (
    "a.run = b.run AND a.topic_id = b.topic_id AND a.partition_index = b.partition_index"
)
_SAME_REPORT: Final = (
    f"{_SAME_PARTITION} AND a.node = b.node AND a.boot = b.boot AND a.leader_epoch = b.leader_epoch"
)

INPUTS: Final = ("silver/offsets_committed", "silver/offsets_removed", "silver/offsets_held")
SQL: Final = f"""
WITH entries AS (
  SELECT run, node, boot, seq, mono_ns, group_id, topic_id, partition_index, leader_epoch,
    log_offset, split(entry, ':') AS parts
  FROM offsets_committed LATERAL VIEW explode(offsets) x AS entry
  UNION ALL
  SELECT run, node, boot, seq, mono_ns, group_id, topic_id, partition_index, leader_epoch,
    NULL, split(entry, ':')
  FROM offsets_removed LATERAL VIEW explode(offsets) x AS entry),
changes AS (
  SELECT *, concat(parts[0], '-', parts[1]) AS name,
    CAST(try_element_at(parts, 3) AS BIGINT) AS committed_offset FROM entries),
reports AS (
  SELECT run, node, boot, seq, mono_ns, topic_id, partition_index, leader_epoch
  FROM offsets_held WHERE is_last),
held_entries AS (
  SELECT a.run, a.node, a.boot, b.seq, a.topic_id, a.partition_index,
    explode(transform(a.offsets, entry -> split(entry, ':', 5))) AS parts
  FROM offsets_held a JOIN reports b ON {_SAME_REPORT}),
held AS (
  SELECT run, node, boot, seq, parts[4] AS group_id, concat(parts[0], '-', parts[1]) AS name,
    CAST(parts[2] AS BIGINT) AS committed_offset, CAST(parts[3] AS BIGINT) AS log_offset
  FROM held_entries),
last AS (
  SELECT b.run, b.node, b.boot, b.seq, a.group_id, a.name, max_by(
    struct(a.node, a.boot, a.seq, a.committed_offset, a.log_offset),
    struct(a.leader_epoch, a.mono_ns, a.node, a.boot, a.seq)) AS change
  FROM changes a JOIN reports b ON {_SAME_PARTITION} AND (a.leader_epoch < b.leader_epoch
    OR a.leader_epoch = b.leader_epoch AND (a.node <> b.node OR a.mono_ns <= b.mono_ns))
  GROUP BY b.run, b.node, b.boot, b.seq, a.group_id, a.name),
judged AS (
  SELECT a.*, CASE
    WHEN b.log_offset IS NULL THEN 'no offset'
    WHEN b.log_offset < change.log_offset THEN concat(b.committed_offset, ', which is older')
    WHEN b.log_offset = change.log_offset AND b.committed_offset != change.committed_offset THEN
      concat(b.committed_offset, ', which was not committed') END AS wrong
  FROM last a LEFT JOIN held b ON a.run = b.run AND a.node = b.node AND a.boot = b.boot
    AND a.seq = b.seq AND a.group_id = b.group_id AND a.name = b.name
  WHERE change.committed_offset IS NOT NULL)
SELECT run,
  CASE WHEN wrong IS NOT NULL THEN concat({sql.place_of("judged")}, '/', group_id, '/', name) END
    AS key,
  array({sql.row_of("change")}, {sql.row_of("judged")}) AS rows,
  concat('group ', group_id, ', ', name, ': ', change.committed_offset,
    ' was committed, but node ', node, ' has ', wrong) AS sentence
FROM judged
"""
