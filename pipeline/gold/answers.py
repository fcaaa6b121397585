"""Tables of responses, decisions, committed elements, topics' lives and clients' operations.

A response and a decision belong together when they have the same request and zxid. A decision is
what the controller claims; an outcome is what ZooKeeper recorded.
"""

from __future__ import annotations

from typing import Final

from judge.sql import row_of
from pipeline.schemas import ELEMENTS, IDENTITY
from pipeline.table import Table, query

_ANSWERS: Final = f"""
WITH relevant AS (
  SELECT run, request_id, zxid, kind, struct(file, line_number) AS place,
    struct(node, boot, seq) AS at, route, identity, api_key, elements, unchanged, error,
    image_zxid, validate_only
  FROM events WHERE kind = 'request_decided'
    OR (kind = 'answered' AND error IS NULL AND NOT closed)),
paired AS (
  SELECT run, request_id, zxid,
    min_by(struct(at, identity, api_key, elements, unchanged, error, image_zxid, validate_only),
      place) FILTER (WHERE kind = 'request_decided') AS d,
    collect_list(struct(place, at, route)) FILTER (WHERE kind = 'answered') AS answers
  FROM relevant GROUP BY run, request_id, zxid),
each AS (SELECT run, request_id, zxid, d, explode(answers) AS a FROM paired WHERE d IS NOT NULL)
SELECT run, request_id, d.identity, d.api_key, d.elements, d.unchanged, d.error, d.image_zxid,
  zxid, d.validate_only, a.route, {row_of("d.at")} AS decided_row,
  {row_of("a.at")} AS answered_row
FROM each
"""

_COMMITTED: Final = """
SELECT run, broker_id, incarnation, sequence, element,
  array_sort(collect_set(zxid)) AS zxids,
  array_sort(coalesce(collect_set(zxid) FILTER (WHERE error = 0), array())) AS done,
  min_by(request_id, struct(zxid, position)) AS request_id,
  coalesce(bool_or(wrote_topic) FILTER (WHERE error = 0), false) AS wrote_topic,
  coalesce(bool_or(wrote_config) FILTER (WHERE error = 0), false) AS wrote_config,
  bool_or(wrote_token) AS wrote_token
FROM outcomes GROUP BY run, broker_id, incarnation, sequence, element
"""

# A topic lives from the creation of its znode to the deletion, if there is one.
_LIVES: Final = f"""
WITH applied AS (
  SELECT c.* FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
  WHERE NOT c.failed AND exists(c.operations, o -> o.kind IN ('create', 'delete')
    AND o.path LIKE '/brokers/topics/%')),
each AS (SELECT run, zxid, outcomes, posexplode(operations) AS (position, o) FROM applied),
of_topics AS (
  SELECT run, substring(o.path, 17) AS topic, o.kind, zxid, position,
    get(filter(outcomes, x -> x.element = substring(o.path, 17) AND x.error = 0), 0) AS creator
  FROM each WHERE o.kind IN ('create', 'delete') AND o.path LIKE '/brokers/topics/%'
    AND instr(substring(o.path, 17), '/') = 0
  UNION ALL
  SELECT run, substring(path, 17), 'create', czxid, -1, NULL
  FROM dumps WHERE NOT is_final AND path LIKE '/brokers/topics/%'
    AND instr(substring(path, 17), '/') = 0),
followed AS (
  SELECT *, lead(struct(kind, zxid)) OVER (PARTITION BY run, topic ORDER BY zxid, position) AS next
  FROM of_topics),
lives AS (
  SELECT run, topic, zxid AS born, CASE WHEN next.kind = 'delete' THEN next.zxid ELSE {1 << 62}L
    END AS died, CASE WHEN creator IS NULL THEN NULL ELSE
    named_struct('broker_id', creator.broker_id, 'incarnation', creator.incarnation,
      'sequence', creator.sequence) END AS creator
  FROM followed WHERE kind = 'create')
SELECT run, topic, array_sort(collect_list(struct(born, died, creator))) AS lives
FROM lives GROUP BY run, topic
"""

_DECISIONS: Final = """
WITH each AS (
  SELECT *, explode(elements) AS e FROM answers)
SELECT a.run, a.request_id, a.identity, a.api_key, e.element, e.error,
  array_contains(a.unchanged, e.element) AS unchanged, a.validate_only, a.image_zxid, a.zxid,
  a.route, a.decided_row, a.answered_row, coalesce(c.zxids, array()) AS committed,
  coalesce(c.done, array()) AS done, coalesce(c.wrote_topic, false) AS wrote_topic,
  coalesce(c.wrote_config, false) AS wrote_config
FROM each a LEFT JOIN committed c ON a.run = c.run AND a.identity.broker_id = c.broker_id
  AND a.identity.incarnation = c.incarnation AND a.identity.sequence = c.sequence
  AND e.element = c.element
"""

_OPERATIONS: Final = f"""
WITH history AS (SELECT * FROM events WHERE kind IN ('client_invoked', 'client_completed')
    AND source = 'client'),
completed AS (
  SELECT run, op_id, min_by(struct(outcome, elements, mono_ns, {row_of("history")} AS row),
    struct(file, line_number)) AS first
  FROM history WHERE kind = 'client_completed' GROUP BY run, op_id)
SELECT i.run, i.op_id, i.api_key, transform(i.elements, e -> e.element) AS requested,
  coalesce(t.first.outcome, 'info') AS outcome, coalesce(t.first.elements, array()) AS elements,
  {row_of("i")} AS invoked_row, t.first.row AS completed_row, i.mono_ns AS invoked_ns,
  t.first.mono_ns AS completed_ns
FROM history i LEFT JOIN completed t ON i.run = t.run AND i.op_id = t.op_id
WHERE i.kind = 'client_invoked'
"""

# Operations have no request id. So an effect belongs to an operation only if no other operation of
# the same API named the element (`named_once`).
_CLIENT_OUTCOMES: Final = """
WITH requested AS (
  SELECT run, op_id, api_key, outcome, explode(requested) AS element FROM operations),
named AS (
  SELECT run, api_key, element, count(*) = 1 AS once FROM requested GROUP BY run, api_key, element),
effects AS (
  SELECT o.run, r.received.api_key AS api_key, o.element, array_sort(collect_set(o.zxid)) AS done
  FROM outcomes o JOIN requests r ON o.run = r.run AND o.request_id = r.request_id
  WHERE o.error = 0 AND r.received IS NOT NULL GROUP BY o.run, r.received.api_key, o.element),
same AS (
  SELECT DISTINCT run, api_key, explode(unchanged) AS element FROM answers),
results AS (
  SELECT run, op_id, api_key, requested, outcome, e.element, e.error, invoked_row, completed_row
  FROM operations LATERAL VIEW explode(elements) x AS e
  UNION ALL
  SELECT run, op_id, api_key, requested, outcome, element, NULL, invoked_row, completed_row
  FROM operations LATERAL VIEW explode(requested) x AS element WHERE outcome = 'info')
SELECT t.run, t.op_id, t.api_key, t.outcome, t.element, t.error,
  coalesce(n.once, false) AS named_once, s.element IS NOT NULL AS unchanged,
  coalesce(e.done, array()) AS done, t.invoked_row, t.completed_row
FROM results t
LEFT JOIN named n ON t.run = n.run AND t.api_key = n.api_key AND t.element = n.element
LEFT JOIN effects e ON t.run = e.run AND t.api_key = e.api_key AND t.element = e.element
LEFT JOIN same s ON t.run = s.run AND t.api_key = s.api_key AND t.element = s.element
"""

ANSWERS: Final = Table(
    name="gold/answers",
    inputs=("silver/events",),
    schema=f"run STRING, request_id STRING, identity {IDENTITY}, api_key BIGINT, "
    f"elements {ELEMENTS}, unchanged ARRAY<STRING>, error BIGINT, image_zxid BIGINT, "
    "zxid BIGINT, validate_only BOOLEAN, route STRING, decided_row STRING, answered_row STRING",
    build=query(_ANSWERS),
)
COMMITTED: Final = Table(
    name="gold/committed",
    inputs=("silver/outcomes",),
    schema="run STRING, broker_id BIGINT, incarnation STRING, sequence BIGINT, element STRING, "
    "zxids ARRAY<BIGINT>, done ARRAY<BIGINT>, request_id STRING, wrote_topic BOOLEAN, "
    "wrote_config BOOLEAN, wrote_token BOOLEAN",
    build=query(_COMMITTED),
)
LIVES: Final = Table(
    name="gold/topic_lives",
    inputs=("silver/commits", "silver/dumps", "runs"),
    schema="run STRING, topic STRING, lives ARRAY<STRUCT<born: BIGINT, died: BIGINT, "
    f"creator: {IDENTITY}>>",
    build=query(_LIVES),
)
DECISIONS: Final = Table(
    name="gold/decisions",
    inputs=("gold/answers", "gold/committed"),
    schema=f"run STRING, request_id STRING, identity {IDENTITY}, api_key BIGINT, "
    "element STRING, error BIGINT, unchanged BOOLEAN, validate_only BOOLEAN, "
    "image_zxid BIGINT, zxid BIGINT, route STRING, decided_row STRING, answered_row STRING, "
    "committed ARRAY<BIGINT>, done ARRAY<BIGINT>, wrote_topic BOOLEAN, wrote_config BOOLEAN",
    build=query(_DECISIONS),
)
OPERATIONS: Final = Table(
    name="gold/operations",
    inputs=("silver/events",),
    schema=f"run STRING, op_id STRING, api_key BIGINT, requested ARRAY<STRING>, outcome STRING, "
    f"elements {ELEMENTS}, invoked_row STRING, completed_row STRING, invoked_ns BIGINT, "
    "completed_ns BIGINT",
    build=query(_OPERATIONS),
)
CLIENT_OUTCOMES: Final = Table(
    name="gold/client_outcomes",
    inputs=("gold/operations", "silver/outcomes", "gold/requests", "gold/answers"),
    schema="run STRING, op_id STRING, api_key BIGINT, outcome STRING, element STRING, "
    "error BIGINT, named_once BOOLEAN, unchanged BOOLEAN, done ARRAY<BIGINT>, "
    "invoked_row STRING, completed_row STRING",
    build=query(_CLIENT_OUTCOMES),
)
