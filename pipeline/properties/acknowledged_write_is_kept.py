"""D1: an acknowledged write is committed before its response and still exists at the end.

A deletion (API key 20) commits nothing if another request is already deleting the topic; D5
(error_code_matches_state) judges whether the topic is gone.
"""

from __future__ import annotations

from typing import Final

from pipeline.sql import zxid_rows

_OF_RESPONSES: Final = f"""
created AS (
  SELECT run, topic, l.creator FROM topic_lives LATERAL VIEW explode(lives) x AS l),
acknowledged AS (
  SELECT d.*, m.creator IS NOT NULL AS created_it
  FROM decisions d LEFT JOIN (SELECT DISTINCT run, topic, creator FROM created) m
    ON d.run = m.run AND d.api_key = 19 AND d.element = m.topic AND d.identity = m.creator
  WHERE d.error = 0 AND NOT d.validate_only AND NOT d.unchanged),
judged AS (
  SELECT *, CASE
    WHEN size(done) = 0 THEN CASE WHEN api_key <> 20 THEN 'never committed' END
    WHEN array_min(done) > zxid THEN 'its commit came later'
    WHEN api_key = 19 AND NOT created_it THEN 'its topic was not created'
    WHEN api_key = 37 AND NOT wrote_topic OR api_key IN (33, 44) AND NOT wrote_config
      THEN 'its commit did not write its znode'
    END AS wrong
  FROM acknowledged),
of_responses AS (
  SELECT run, CASE WHEN wrong IS NOT NULL THEN concat(request_id, '/', element) END AS key,
    concat(array(answered_row, decided_row), {zxid_rows("done")}) AS rows,
    concat(request_id, ': ', element, ' was acknowledged, but ', wrong) AS sentence
  FROM judged)"""

_OF_CLIENTS: Final = """
of_clients AS (
  SELECT run, CASE WHEN size(done) = 0 THEN concat(op_id, '/', element) END AS key,
    array(invoked_row, completed_row) AS rows,
    concat(op_id, ': ', element, ' was acknowledged, but never committed') AS sentence
  FROM client_outcomes WHERE error = 0 AND named_once AND NOT unchanged AND api_key <> 20)"""

_REPLAYED: Final = """
steps AS (
  SELECT d.run, d.path, struct(0L AS zxid, 0 AS position) AS at, 'set' AS kind, d.version,
    d.digest, d.mzxid AS zxid
  FROM dumps d JOIN runs r ON d.run = r.run WHERE NOT d.is_final AND r.final_zxid IS NOT NULL
  UNION ALL
  SELECT c.run, o.path, struct(c.zxid, position), o.kind, o.version, coalesce(o.digest, ''), c.zxid
  FROM commits c JOIN runs r
    ON c.run = r.run AND c.zxid > r.first_zxid AND c.zxid <= r.final_zxid
  LATERAL VIEW posexplode(c.operations) x AS position, o
  WHERE NOT c.failed AND o.kind IN ('create', 'set', 'delete')),
replayed AS (
  SELECT run, path, max_by(struct(kind, version, digest, zxid), at) AS last
  FROM steps GROUP BY run, path),
final AS (
  SELECT d.run, d.path, d.version, d.digest FROM dumps d
  JOIN runs r ON d.run = r.run WHERE d.is_final AND r.final_zxid IS NOT NULL),
compared AS (
  SELECT coalesce(p.run, f.run) AS run, coalesce(p.path, f.path) AS path,
    coalesce(p.last.zxid, 0) AS last, p.last IS NOT NULL AND p.last.kind <> 'delete' AS expected,
    f.path IS NOT NULL AS found, p.last.version <=> f.version AND p.last.digest <=> f.digest AS same
  FROM replayed p FULL JOIN final f ON p.run = f.run AND p.path = f.path),
znodes AS (
  SELECT run, CASE WHEN NOT (expected AND found AND same) THEN concat('znode', path) END AS key,
    array(concat('znode', path), concat('zxid/', last)) AS rows,
    concat(path, CASE
      WHEN NOT found THEN ' is missing at the end of the run, but the transaction log has it'
      WHEN NOT expected THEN ' exists at the end of the run, but not in the transaction log'
      ELSE ' differs from the transaction log at the end of the run' END) AS sentence
  FROM compared WHERE expected OR found)"""

INPUTS: Final = (
    *(
        "gold/decisions",
        "gold/topic_lives",
        "gold/client_outcomes",
        "silver/commits",
        "silver/dumps",
    ),
    "runs",
)
SQL: Final = f"""
WITH {_OF_RESPONSES}, {_OF_CLIENTS}, {_REPLAYED}
SELECT * FROM of_responses UNION ALL SELECT * FROM of_clients UNION ALL SELECT * FROM znodes
"""
