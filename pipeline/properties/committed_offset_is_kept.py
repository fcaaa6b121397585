"""D11: for each offset, a coordinator reports the last acknowledged commit or a later one.

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

from typing import Final

from pipeline.sql import place_of, row_of

_SAME_PARTITION: Final = (
    "a.run = b.run AND a.topic_id = b.topic_id AND a.partition_index = b.partition_index"
)
_SAME_REPORT: Final = (
    f"{_SAME_PARTITION} AND a.node = b.node AND a.boot = b.boot AND a.leader_epoch = b.leader_epoch"
)

INPUTS: Final = ("silver/events",)
SQL: Final = f"""
WITH entries AS (
  SELECT run, node, boot, seq, mono_ns, group_id, topic_id, partition_index, leader_epoch,
    log_offset, split(entry, ':') AS parts
  FROM events LATERAL VIEW explode(offsets) x AS entry
  WHERE kind IN ('offsets_committed', 'offsets_removed')),
changes AS (
  SELECT *, concat(parts[0], '-', parts[1]) AS name,
    CAST(try_element_at(parts, 3) AS BIGINT) AS committed_offset FROM entries),
reports AS (
  SELECT run, node, boot, seq, mono_ns, topic_id, partition_index, leader_epoch
  FROM events WHERE kind = 'offsets_held' AND is_last),
held_entries AS (
  SELECT a.run, a.node, a.boot, b.seq, a.topic_id, a.partition_index,
    explode(transform(a.offsets, entry -> split(entry, ':', 5))) AS parts
  FROM events a JOIN reports b ON {_SAME_REPORT} WHERE a.kind = 'offsets_held'),
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
  CASE WHEN wrong IS NOT NULL THEN concat({place_of("judged")}, '/', group_id, '/', name) END
    AS key,
  array({row_of("change")}, {row_of("judged")}) AS rows,
  concat('group ', group_id, ', ', name, ': ', change.committed_offset,
    ' was committed, but node ', node, ' has ', wrong) AS sentence
FROM judged
"""
