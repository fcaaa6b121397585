"""A record that was acknowledged with acks=all is in its partition's log at the end.

A leader that stops cleanly reports its log. The report of a leader that was killed while it stopped
is ignored, because its last events may be missing. If several logs of a partition are reported, the
log with the highest leader epoch counts. A leader that restarts while there is no controller keeps
its epoch, so several logs may have the highest epoch: of these, the last one counts.
A record that was acknowledged in a later leader epoch than the log's is not judged, because the
leader of that epoch was killed. An acknowledged retry is recorded without a CRC, so any batch at
its offset is accepted. Records before the start of the log do not count as lost: retention or
DeleteRecords deleted them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from judge import sql
from judge.history import Boot, Event, History, boot_of, place_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="D6",
    name="acknowledged_record_is_kept",
    statement="a record that was acknowledged with acks=all is kept at its offset",
    witnesses=("events",),
    row="acknowledgements of records, if a leader that stopped cleanly reported the "
    "partition's log in the same leader epoch or a later one",
    key="<node>/<boot>/<seq>",
    gap_blocks_fail=True,  # the gap may hide batches of the log
)

# The `crc` of a records_acknowledged event for a retry. An earlier attempt appended the batch, so
# its CRC is not recorded.
UNKNOWN_CRC: Final = -1

Partition = tuple[str, int]  # topic id, partition


def check(history: History) -> Iterator[Violation | None]:
    """Look up each acknowledgement in the log that counts."""
    logs = {name: (pages[0], _batches(pages)) for name, pages in _last_logs(history).items()}
    for event in history.of_kind["records_acknowledged"]:
        log = logs.get(_partition(event))
        if log is None or log[0]["leader_epoch"] < event["leader_epoch"]:
            continue
        wrong = _wrong(event, *log)
        if wrong is None:
            yield None
            continue
        first, last = event["base_offset"], event["base_offset"] + event["record_count"] - 1
        name = f"{event['topic']}-{event['partition_index']}"
        sentence = f"{name}: the acknowledged records {first} to {last} {wrong}"
        yield SPEC.violation(place_of(event), [row_of(event), row_of(log[0])], sentence)


def _partition(event: Event) -> Partition:
    return event["topic_id"], event["partition_index"]


def _last_logs(history: History) -> Mapping[Partition, Sequence[Event]]:
    """Return, for each partition, the `log_held` events of the log that counts, in order."""
    stopped = {boot_of(event) for event in history.of_kind["stopped"]}
    reports: dict[Partition, dict[Boot, list[Event]]] = {}
    for event in history.of_kind["log_held"]:
        if boot_of(event) not in stopped:
            continue
        reports.setdefault(_partition(event), defaultdict(list))[boot_of(event)].append(event)
    return {
        name: sorted(max(logs.values(), key=_order), key=lambda event: int(event["seq"]))
        for name, logs in reports.items()
    }


def _order(pages: Iterable[Event]) -> tuple[int, int, str, str]:
    """Sort key of the logs of one partition: the log that counts comes last."""
    return max((page["leader_epoch"], page["mono_ns"], *boot_of(page)) for page in pages)


def _batches(pages: Sequence[Event]) -> Mapping[int, int]:
    """Return the CRC of each batch by its first offset."""
    pairs = (batch.split(":") for page in pages for batch in page["batches"])
    return {int(offset): int(crc) for offset, crc in pairs}


def _wrong(event: Event, log: Event, batches: Mapping[int, int]) -> str | None:
    first, crc = event["base_offset"], event["crc"]
    if first < log["start_offset"]:
        return None
    if first + event["record_count"] > log["end_offset"]:
        return f"are missing in the log of node {log['node']}, which ends at {log['end_offset']}"
    held = batches.get(first)
    if held is not None and crc in (UNKNOWN_CRC, held):
        return None
    return f"differ from those in the log of node {log['node']}"


_SAME_PARTITION: Final = (
    "a.run = b.run AND a.topic_id = b.topic_id AND a.partition_index = b.partition_index"
)

INPUTS: Final = ("silver/records_acknowledged", "silver/log_held", "silver/boots")
SQL: Final = f"""
WITH held AS (
  SELECT /*+ BROADCAST(b) */ e.run, e.node, e.boot, e.seq, mono_ns, topic_id, partition_index,
    leader_epoch, start_offset, end_offset, batches, struct(e.node, e.boot) AS log
  FROM log_held e JOIN boots b ON e.run = b.run AND e.node = b.node AND e.boot = b.boot
  WHERE b.stopped_seq IS NOT NULL),
last AS (
  SELECT run, topic_id, partition_index,
    max_by(log, struct(leader_epoch, mono_ns, node, boot)) AS log
  FROM held GROUP BY run, topic_id, partition_index),
pages AS (
  SELECT a.* FROM held a JOIN last b ON {_SAME_PARTITION} AND a.log = b.log),
logs AS (
  SELECT run, topic_id, partition_index, min_by(
    struct(node, boot, seq, leader_epoch, start_offset, end_offset), seq) AS page
  FROM pages GROUP BY run, topic_id, partition_index),
stored AS (
  SELECT run, topic_id, partition_index, CAST(split_part(batch, ':', 1) AS BIGINT) AS base_offset,
    CAST(split_part(batch, ':', 2) AS BIGINT) AS crc
  FROM pages LATERAL VIEW explode(batches) x AS batch),
acknowledged AS (
  SELECT a.run, a.node, a.boot, a.seq, a.topic, a.topic_id, a.partition_index, a.base_offset,
    a.record_count, a.crc, b.page
  FROM records_acknowledged a JOIN logs b
    ON {_SAME_PARTITION} AND a.leader_epoch <= b.page.leader_epoch),
judged AS (
  SELECT a.*, CASE
    WHEN a.base_offset < page.start_offset THEN NULL
    WHEN a.base_offset + record_count > page.end_offset THEN concat(
      'are missing in the log of node ', page.node, ', which ends at ', page.end_offset)
    WHEN b.crc IS NOT NULL AND a.crc IN ({UNKNOWN_CRC}, b.crc) THEN NULL
    ELSE concat('differ from those in the log of node ', page.node) END AS wrong
  FROM acknowledged a LEFT JOIN stored b ON {_SAME_PARTITION} AND a.base_offset = b.base_offset)
SELECT run, CASE WHEN wrong IS NOT NULL THEN {sql.place_of("judged")} END AS key,
  array({sql.row_of("judged")}, {sql.row_of("page")}) AS rows,
  concat(topic, '-', partition_index, ': the acknowledged records ', base_offset, ' to ',
    base_offset + record_count - 1, ' ', wrong) AS sentence
FROM judged
"""
