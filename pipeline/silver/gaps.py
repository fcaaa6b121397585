"""For each kind of evidence, the number of gaps and the sentence of the first one.

Because of a gap, a violation may be missed, or correct behaviour may look like one.
"""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

# The order is the same as in the plain judge, so that both judges report the same first gap.
_GAPS: Final = """
WITH gaps AS (
  SELECT run, witness, sentence, struct(0 AS stage, '' AS place, '' AS boot, position AS number)
    AS place
  FROM manifest_gaps
  UNION ALL
  SELECT /*+ BROADCAST(f) */ s.run, f.witness,
    concat(s.file, ':', s.line_number, ' is quarantined: ', array_join(s.reasons, ', ')),
    struct(1 AS stage, s.file AS place, '' AS boot, s.line_number AS number)
  FROM set_aside s JOIN files f ON s.run = f.run AND s.file = f.file WHERE s.fate = 'quarantined'
  UNION ALL
  SELECT run, CASE WHEN node LIKE 'client-%' THEN 'clients' ELSE 'events' END, g.sentence,
    struct(2 AS stage, node AS place, boot AS boot, g.number AS number)
  FROM boots LATERAL VIEW explode(array(
    CASE WHEN missing > 0 THEN struct(concat('node ', node, ' boot ', boot, ': ', missing, ' of ',
      last_seq + 1, ' events missing') AS sentence, 0L AS number) END,
    CASE WHEN stopped_seq IS NULL AND NOT killed THEN struct(concat('node ', node, ' boot ', boot,
      ': its end is not recorded') AS sentence, 1L AS number) END)) x AS g
  WHERE g IS NOT NULL)
SELECT run, witness, count(*) AS gaps, min_by(sentence, place) AS first_gap
FROM gaps GROUP BY run, witness
"""

GAPS: Final = Table(
    name="silver/gaps",
    inputs=("manifest_gaps", "files", "silver/set_aside", "silver/boots"),
    schema="run STRING, witness STRING, gaps BIGINT, first_gap STRING",
    build=query(_GAPS),
)
