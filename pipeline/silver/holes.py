"""What is missing of each witness, as sentences. Where there is a hole, absence proves nothing."""

from __future__ import annotations

from typing import Final

from pipeline.table import Table, query

_HOLES: Final = """
WITH known AS (
  SELECT run, witness, sentence, 0 AS rank FROM manifest_holes
  UNION ALL
  SELECT run, witness, concat(file, ' is missing'), 1 FROM files WHERE NOT is_there
  UNION ALL
  SELECT /*+ BROADCAST(f) */ s.run, f.witness,
    concat(s.file, ':', s.line_number, ' is quarantined: ', array_join(s.reasons, ', ')), 2
  FROM set_aside s JOIN files f ON s.run = f.run AND s.file = f.file WHERE s.fate = 'quarantined'
  UNION ALL
  SELECT run, CASE WHEN node LIKE 'client-%' THEN 'clients' ELSE 'events' END,
    concat('node ', node, ' boot ', boot, ': ', missing, ' events up to ', last_seq,
           ' are missing'), 3
  FROM boots WHERE missing > 0
  UNION ALL
  SELECT run, CASE WHEN node LIKE 'client-%' THEN 'clients' ELSE 'events' END,
    concat('node ', node, ' boot ', boot, ': how it ended is not recorded'), 4
  FROM boots WHERE stopped_seq IS NULL AND NOT killed)
SELECT run, witness, count(*) AS holes, min_by(sentence, struct(rank, sentence)) AS first_hole
FROM known GROUP BY run, witness
"""

HOLES: Final = Table(
    name="silver/holes",
    inputs=("manifest_holes", "files", "silver/set_aside", "silver/boots"),
    schema="run STRING, witness STRING, holes BIGINT, first_hole STRING",
    build=query(_HOLES),
)
