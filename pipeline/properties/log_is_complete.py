"""K3: every boot's events are there without a hole, up to its end, and written by one.

Holes are found when the lines are read and make this UNKNOWN; here is what a reader of whole lines
can still find wrong.
"""

from __future__ import annotations

from typing import Final

from pipeline.property import Property

PROPERTY: Final = Property(
    id="K3",
    inputs=("silver/boots", "silver/set_aside"),
    sql="""
WITH twice AS (
  SELECT run, concat(node, '/', boot, '/', seq) AS key,
    concat('event ', seq, ' of node ', node, ' boot ', boot, ' was written twice, differently')
      AS sentence
  FROM set_aside WHERE fate = 'two_writers')
SELECT run, CASE WHEN last_seq > stopped_seq THEN concat(node, '/', boot, '/', last_seq) END AS key,
  array(concat('event/', node, '/', boot, '/', stopped_seq),
    concat('event/', node, '/', boot, '/', last_seq)) AS rows,
  concat('node ', node, ' wrote an event after it had stopped') AS sentence, 1 AS judged
FROM boots
UNION ALL
SELECT run, key, array(concat('event/', key)), sentence, 0 FROM twice
""",
)
