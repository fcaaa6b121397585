"""Counts each file's lines by result; the sum must be the number in the manifest."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

_ACCOUNTING: Final = """
WITH kept AS (
  SELECT run, file, count(*) AS accepted FROM (
    SELECT run, file FROM events UNION ALL SELECT run, file FROM commits
    UNION ALL SELECT run, file FROM dumps UNION ALL SELECT run, file FROM kafka_requests
    UNION ALL SELECT run, file FROM kafka_decisions) GROUP BY run, file),
unknown AS (
  SELECT run, file, count(ext) AS with_unknown_fields FROM examined GROUP BY run, file),
aside AS (
  SELECT run, file, count_if(fate = 'quarantined') AS quarantined,
    count_if(fate = 'duplicate') AS duplicates, count_if(fate = 'two_writers') AS two_writers,
    count_if(fate = 'cut') AS cut
  FROM set_aside GROUP BY run, file),
read AS (
  SELECT run, file, sum(lines) AS lines, sum(blank) AS blank FROM counts GROUP BY run, file)
SELECT f.run, f.file, f.source, f.witness, f.is_there, f.lines AS sealed,
  coalesce(r.lines, 0) AS read, coalesce(k.accepted, 0) AS accepted,
  coalesce(a.quarantined, 0) AS quarantined, coalesce(a.duplicates, 0) AS duplicates,
  coalesce(a.two_writers, 0) AS two_writers, coalesce(r.blank, 0) AS blank,
  coalesce(a.cut, 0) AS cut, coalesce(u.with_unknown_fields, 0) AS with_unknown_fields,
  coalesce(k.accepted, 0) + coalesce(a.quarantined, 0) + coalesce(a.duplicates, 0)
    + coalesce(a.two_writers, 0) + coalesce(r.blank, 0) + coalesce(a.cut, 0) AS accounted
FROM files f
LEFT JOIN read r ON f.run = r.run AND f.file = r.file
LEFT JOIN kept k ON f.run = k.run AND f.file = k.file
LEFT JOIN unknown u ON f.run = u.run AND f.file = u.file
LEFT JOIN aside a ON f.run = a.run AND f.file = a.file
"""

ACCOUNTING: Final = Table(
    name="gold/accounting",
    inputs=(
        *("files", "bronze/counts", "silver/events", "silver/examined"),
        *("silver/commits", "silver/dumps"),
        *("silver/set_aside", "silver/kafka_requests", "silver/kafka_decisions"),
    ),
    schema="run STRING, file STRING, source STRING, witness STRING, is_there BOOLEAN, "
    "sealed BIGINT, read BIGINT, accepted BIGINT, quarantined BIGINT, duplicates BIGINT, "
    "two_writers BIGINT, blank BIGINT, cut BIGINT, with_unknown_fields BIGINT, accounted BIGINT",
    build=query(_ACCOUNTING),
)
