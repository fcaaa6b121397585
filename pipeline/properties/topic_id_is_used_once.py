"""D10: a created topic has an id that no earlier topic had.

KIP-516: only the id distinguishes a topic from a deleted topic of the same name.
"""

from __future__ import annotations

from typing import Final

_IS_TOPIC: Final = "{0} RLIKE '^/brokers/topics/[^/]*$'"
_ID: Final = "get_json_object({0}, '$.topic_id')"

INPUTS: Final = ("silver/commits", "silver/dumps", "runs")
SQL: Final = f"""
WITH created AS (
  SELECT c.run, c.zxid, place, substring(o.path, 17) AS topic, {_ID.format("o.data")} AS id,
    true AS judged
  FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
  LATERAL VIEW posexplode(c.operations) x AS place, o
  WHERE NOT c.failed AND o.kind = 'create' AND {_IS_TOPIC.format("o.path")}
  UNION ALL
  SELECT run, czxid, -1, substring(path, 17), {_ID.format("data")}, false FROM dumps
  WHERE NOT is_final AND {_IS_TOPIC.format("path")}),
followed AS (
  SELECT *, min(struct(zxid, place)) OVER (PARTITION BY run, id) AS before
  FROM created WHERE id <> ''),
checked AS (SELECT * FROM followed WHERE judged)
SELECT run, CASE WHEN before < struct(zxid, place) THEN concat(zxid, '/', topic) END AS key,
  array(concat('zxid/', before.zxid), concat('zxid/', zxid)) AS rows,
  concat('zxid ', zxid, ': ', topic, ' was created with id ', id,
    ', which a topic created at zxid ', before.zxid, ' already had') AS sentence
FROM checked
"""
