"""The number of rows judged and of violations, by property."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

# `first_sentence` is the sentence of the first violation in the order of
# judge.property.violation_order.
COUNTS: Final = Table(
    name="gold/counts",
    inputs=("gold/findings", "gold/violations"),
    schema="run STRING, property STRING, judged BIGINT, violations BIGINT, first_sentence STRING",
    build=query("""
WITH judged AS (
  SELECT run, property, sum(judged) AS judged FROM findings GROUP BY run, property),
violated AS (
  SELECT run, property, count(*) AS violations,
    min_by(sentence, struct(length(key), key, sentence)) AS first_sentence
  FROM violations GROUP BY run, property)
SELECT j.run, j.property, j.judged, coalesce(v.violations, 0) AS violations, v.first_sentence
FROM judged j LEFT JOIN violated v ON j.run = v.run AND j.property = v.property
"""),
)
