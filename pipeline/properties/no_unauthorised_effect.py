"""A1: whoever changed something was allowed to, by the ACLs as they stood then.

Kafka's rules, written once more over ZooKeeper's log: `/kafka-acl/<Type>/<name>` holds literal
patterns (`*` is any name), `/kafka-acl-extended/prefixed/<Type>/<prefix>` prefixed ones. A denial
wins over any permission; without an ACL on the resource nobody is allowed, unless the run says
otherwise; super users always are. The client is the one whom its broker authenticated. An API
that is not here asks for nothing that ACLs could tell (tokens are their owner's). What a broker
below the bridge release writes itself (epoch 0) is judged by the ACLs as that broker knew them; it
says as of when, unless they change faster than it can read them (-1).
"""

from __future__ import annotations

from typing import Final

from pipeline.property import Property

_CLUSTER: Final = ("Cluster", "'kafka-cluster'")


def _need(operation: str, type_: str, name: str) -> str:
    return f"named_struct('o', '{operation}', 't', '{type_}', 'n', {name})"


# By API: one of these suffices.
_NEEDS: Final = f"""CASE
  WHEN api_key = 19 THEN array({_need("Create", *_CLUSTER)}, {_need("Create", "Topic", "element")})
  WHEN api_key = 20 AND element NOT LIKE 'id:%' THEN array({_need("Delete", "Topic", "element")})
  WHEN api_key = 37 AND element NOT LIKE 'id:%' THEN array({_need("Alter", "Topic", "element")})
  WHEN api_key IN (30, 31, 43, 45, 51, 57) THEN array({_need("Alter", *_CLUSTER)})
  WHEN api_key = 49 THEN array({_need("AlterConfigs", *_CLUSTER)})
  WHEN api_key IN (33, 44) AND element LIKE '2:%'
    THEN array({_need("AlterConfigs", "Topic", "substring(element, 3)")})
  WHEN api_key IN (33, 44) THEN array({_need("AlterConfigs", *_CLUSTER)}) END"""

_QUESTIONS: Final = f"""
WITH secured AS (SELECT run, super_users, allow_if_no_acl FROM runs WHERE super_users IS NOT NULL),
images AS (
  SELECT run, identity, epoch, max_by(image_zxid, struct(file, line_number)) AS image_zxid
  FROM events WHERE kind = 'execution_started' GROUP BY run, identity, epoch),
offices AS (SELECT run, session, max_by(epoch, zxid) AS epoch FROM terms GROUP BY run, session),
done AS (
  SELECT o.run, o.zxid, o.request_id, o.element, r.received AS r, r.received.api_key AS api_key,
    struct(o.broker_id, o.incarnation, o.sequence) AS identity,
    coalesce(f.epoch, 0) AS epoch, s.super_users, s.allow_if_no_acl, o.position
  FROM outcomes o JOIN secured s ON o.run = s.run
  JOIN requests r ON o.run = r.run AND o.request_id = r.request_id
  LEFT JOIN offices f ON o.run = f.run AND o.session = f.session
  WHERE o.error = 0 AND r.received IS NOT NULL),
needy AS (
  SELECT d.*, i.image_zxid, {_NEEDS} AS needs FROM done d
  JOIN images i ON d.run = i.run AND d.identity = i.identity AND d.epoch = i.epoch
    AND i.image_zxid >= 0),
judged AS (SELECT * FROM needy WHERE needs IS NOT NULL),
asked AS (
  SELECT run, zxid, position, request_id, element, r.principal AS principal,
    r.client_host AS host, image_zxid, explode(needs) AS need FROM judged
  WHERE NOT array_contains(super_users, r.principal))"""

_STATES: Final = """
steps AS (
  SELECT run, path, 0L AS since, -1 AS position, data FROM dumps
  WHERE NOT is_final AND (path LIKE '/kafka-acl/%' OR path LIKE '/kafka-acl-extended/prefixed/%')
  UNION ALL
  SELECT c.run, o.path, c.zxid, position, CASE WHEN o.kind <> 'delete' THEN o.data END
  FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
  LATERAL VIEW posexplode(c.operations) x AS position, o
  WHERE NOT c.failed AND o.kind IN ('create', 'set', 'delete') AND
    (o.path LIKE '/kafka-acl/%' OR o.path LIKE '/kafka-acl-extended/prefixed/%')),
states AS (
  SELECT run, path, array_sort(collect_list(struct(since, position, coalesce(from_json(data,
    'acls ARRAY<STRUCT<principal: STRING, permissionType: STRING, operation: STRING, host: STRING>>'
    ).acls, array()) AS acls))) AS states
  FROM steps GROUP BY run, path),
lengths AS (
  SELECT DISTINCT run, split_part(path, '/', 4) AS type,
    length(path) - length(concat('/kafka-acl-extended/prefixed/', split_part(path, '/', 4), '/'))
      AS length
  FROM states WHERE path LIKE '/kafka-acl-extended/prefixed/%'),
candidates AS (
  SELECT a.*, explode(array_distinct(array(concat('/kafka-acl/', need.t, '/', need.n),
    concat('/kafka-acl/', need.t, '/*')))) AS path FROM asked a
  UNION ALL
  SELECT /*+ BROADCAST(l) */ a.*, concat('/kafka-acl-extended/prefixed/', need.t, '/',
    substring(need.n, 1, l.length))
  FROM asked a JOIN lengths l ON a.run = l.run AND a.need.t = l.type
  WHERE l.length <= length(need.n)),
matching AS (
  SELECT c.run, c.zxid, c.position, c.request_id, c.element, c.principal, c.host, c.need,
    coalesce(get(filter(s.states, x -> x.since <= c.image_zxid),
      size(filter(s.states, x -> x.since <= c.image_zxid)) - 1).acls, array()) AS acls
  FROM candidates c LEFT JOIN states s ON c.run = s.run AND c.path = s.path),
per_need AS (
  SELECT run, zxid, position, request_id, element, need, max(principal) AS principal,
    max(host) AS host, flatten(collect_list(acls)) AS acls
  FROM matching GROUP BY run, zxid, position, request_id, element, need),
spoken AS (
  SELECT *, filter(acls,
    x -> x.principal IN (principal, 'User:*') AND x.host IN (host, '*')) AS mine
  FROM per_need),
answered AS (
  SELECT p.run, p.zxid, p.position, bool_or(CASE WHEN size(p.acls) = 0 THEN s.allow_if_no_acl
    ELSE NOT exists(p.mine, x -> lower(x.permissionType) = 'deny'
           AND lower(x.operation) IN (lower(p.need.o), 'all'))
      AND exists(p.mine, x -> lower(x.permissionType) = 'allow'
           AND lower(x.operation) IN (lower(p.need.o), 'all')) END) AS allowed
  FROM spoken p JOIN secured s ON p.run = s.run GROUP BY p.run, p.zxid, p.position)"""

PROPERTY: Final = Property(
    id="A1",
    inputs=(
        *("silver/events", "silver/commits", "silver/dumps", "silver/outcomes", "silver/terms"),
        *("gold/requests", "runs"),
    ),
    sql=f"""{_QUESTIONS}, {_STATES}
SELECT j.run, CASE WHEN NOT coalesce(a.allowed, true)
    THEN concat(request_id, '/', element) END AS key,
  array(concat('event/', r.node, '/', r.boot, '/', r.seq), concat('zxid/', j.zxid)) AS rows,
  concat(request_id, ': ', r.principal, ' changed ', element, ' at zxid ', j.zxid, ' without ',
    get(needs, 0).o, ' on ', get(needs, 0).t, ' ', get(needs, 0).n) AS sentence
FROM judged j LEFT JOIN answered a ON j.run = a.run AND j.zxid = a.zxid AND j.position = a.position
""",
)
