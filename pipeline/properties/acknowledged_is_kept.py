"""D1: what a client was told is done stands in ZooKeeper's log, and still stands at the end.

Two independent paths on purpose: each acknowledgement must have its committed outcome and its
effect; and the transactions, replayed from the first dump, must give the final dump.
Somebody else's deletion may be joined (20): then D5 judges that the topic has gone.
"""

from __future__ import annotations

from typing import Final

from pipeline.property import Property

_ANSWERED: Final = """
made AS (
  SELECT run, topic, l.creator FROM topic_lives LATERAL VIEW explode(lives) x AS l),
acknowledged AS (
  SELECT d.*, m.creator IS NOT NULL AS made_it
  FROM decisions d LEFT JOIN (SELECT DISTINCT run, topic, creator FROM made) m
    ON d.run = m.run AND d.api_key = 19 AND d.element = m.topic AND d.identity = m.creator
  WHERE d.error = 0 AND NOT d.validate_only AND NOT d.unchanged),
answered AS (
  SELECT *, CASE
    WHEN size(done) = 0 THEN CASE WHEN api_key <> 20 THEN 'and never committed' END
    WHEN array_min(done) > zxid THEN 'before it was committed'
    WHEN api_key = 19 AND NOT made_it THEN 'and its topic was not made'
    WHEN api_key = 37 AND NOT wrote_topic
      THEN concat('and /brokers/topics/', element, ' was not written')
    WHEN api_key IN (33, 44) AND NOT wrote_config THEN 'and its znode was not written'
    END AS wrong
  FROM acknowledged),
of_brokers AS (
  SELECT run, CASE WHEN wrong IS NOT NULL THEN concat(request_id, '/', element) END AS key,
    concat(array(answered_row, decided_row), transform(done, z -> concat('zxid/', z))) AS rows,
    concat(request_id, ': ', element, ' was acknowledged ', wrong) AS sentence
  FROM answered)"""

_OF_CLIENTS: Final = """
of_clients AS (
  SELECT run, CASE WHEN size(done) = 0 THEN concat(op_id, '/', element) END AS key,
    array(invoked_row, completed_row) AS rows,
    concat(op_id, ': ', element, ' was acknowledged and never committed') AS sentence
  FROM told WHERE error = 0 AND named_once AND NOT unchanged AND api_key <> 20)"""

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
    concat(path, CASE WHEN NOT found THEN ' is not there' WHEN NOT expected THEN ' is there'
      ELSE ' holds something else' END, ', though ZooKeeper''s log says otherwise') AS sentence
  FROM compared WHERE expected OR found)"""

PROPERTY: Final = Property(
    id="D1",
    inputs=(
        *("gold/decisions", "gold/topic_lives", "gold/told", "silver/commits", "silver/dumps"),
        "runs",
    ),
    sql=f"""
WITH {_ANSWERED}, {_OF_CLIENTS}, {_REPLAYED}
SELECT * FROM of_brokers UNION ALL SELECT * FROM of_clients UNION ALL SELECT * FROM znodes
""",
)
