"""K3: every boot has all its events up to its end, written by one process."""

from __future__ import annotations

from typing import Final

INPUTS: Final = ("silver/boots", "silver/set_aside")
JUDGED: Final = "judged"
SQL: Final = """
WITH twice AS (
  SELECT run, concat(node, '/', boot, '/', seq) AS key,
    concat('event ', seq, ' of node ', node, ' boot ', boot,
      ' exists twice, with different content') AS sentence
  FROM set_aside WHERE fate = 'two_writers')
SELECT run, CASE WHEN last_seq > stopped_seq THEN concat(node, '/', boot, '/', last_seq) END AS key,
  array(concat('event/', node, '/', boot, '/', stopped_seq),
    concat('event/', node, '/', boot, '/', last_seq)) AS rows,
  concat('node ', node, ' wrote an event after it had stopped') AS sentence, 1 AS judged
FROM boots
UNION ALL
SELECT run, key, array(concat('event/', key)), sentence, 0 FROM twice
"""
