"""D6: a record that was acknowledged with acks=all is in its partition's log at the end.

A leader that stops cleanly reports its log. The report of a leader that was killed while it stopped
is ignored, because its last events may be missing. If several logs of a partition are reported, the
log with the highest leader epoch counts. A leader that restarts while there is no controller keeps
its epoch: if several logs have the highest epoch, the last one counts.
A record that was acknowledged in a later leader epoch than the log's is not judged, because the
leader of that epoch was killed. An acknowledged retry is recorded without a CRC, so any batch at
its offset counts. Records before the start of the log do not count as lost: retention or
DeleteRecords deleted them.
"""

from __future__ import annotations

from typing import Final

from event_log.properties import UNKNOWN_CRC
from pipeline.sql import place_of, row_of

_SAME_PARTITION: Final = (
    "a.run = b.run AND a.topic_id = b.topic_id AND a.partition_index = b.partition_index"
)

INPUTS: Final = ("silver/events", "silver/boots")
SQL: Final = f"""
WITH held AS (
  SELECT /*+ BROADCAST(b) */ e.run, e.node, e.boot, e.seq, mono_ns, topic_id, partition_index,
    leader_epoch, start_offset, end_offset, batches, struct(e.node, e.boot) AS log
  FROM events e JOIN boots b ON e.run = b.run AND e.node = b.node AND e.boot = b.boot
  WHERE e.kind = 'log_held' AND b.stopped_seq IS NOT NULL),
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
  FROM events a JOIN logs b ON {_SAME_PARTITION} AND a.leader_epoch <= b.page.leader_epoch
  WHERE a.kind = 'records_acknowledged'),
judged AS (
  SELECT a.*, CASE
    WHEN a.base_offset < page.start_offset THEN NULL
    WHEN a.base_offset + record_count > page.end_offset THEN concat(
      'are missing in the log of node ', page.node, ', which ends at ', page.end_offset)
    WHEN b.crc IS NOT NULL AND a.crc IN ({UNKNOWN_CRC}, b.crc) THEN NULL
    ELSE concat('differ from those in the log of node ', page.node) END AS wrong
  FROM acknowledged a LEFT JOIN stored b ON {_SAME_PARTITION} AND a.base_offset = b.base_offset)
SELECT run, CASE WHEN wrong IS NOT NULL THEN {place_of("judged")} END AS key,
  array({row_of("judged")}, {row_of("page")}) AS rows,
  concat(topic, '-', partition_index, ': the acknowledged records ', base_offset, ' to ',
    base_offset + record_count - 1, ' ', wrong) AS sentence
FROM judged
"""
