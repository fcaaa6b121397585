"""Every committed change was authorized by the ACLs at the time of the decision.

The principal is the one that the client's broker authenticated, not the one that the controller
used. A change by an API without known rights (judge/rights.py) is a violation. A broker below
the bridge release decides its own writes: it records the zxid of the ACLs that it used, or -1 if
the ACLs changed while it read them. Writes with -1 are not judged.

A request may be executed several times: after a conflict, or because it was sent again. A1 uses
the last execution whose image is older than the commit, or the last execution if no image is older.

A controller may decide on ACLs that are newer than the zxid of its image, because an earlier
request of the same round or a broker below the bridge release has changed them. So it is enough if
the ACLs at the commit allow the change. For a change of ACLs, the ACLs just before the commit are
used instead, because no change may grant its own right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from judge.history import NONE, History, Identity, identity_of, row_of
from judge.property import PropertySpec, Runs, Violation, zxid_row
from judge.reference_authorizer import Access, AclHistory
from judge.rights import (
    CLUSTER,
    RIGHTS,
    TOPIC_BY_ID,
    TOPIC_CONFIG,
    WITHOUT_ACLS,
    WRITES_ACLS,
    required_rights,
)

SPEC: Final = PropertySpec(
    id="A1",
    name="no_unauthorized_effect",
    statement="every committed change was authorized by the ACLs at the time of the decision",
    witnesses=("commits", "events"),
    row="committed elements of requests with a known principal, in runs with an authorizer",
    key="<request id>/<element>",
    gap_blocks_fail=True,  # the gap may hide the ACL that allowed it
    applies_to=Runs.WITH_AUTHORIZER,
)

NO_EPOCH: Final = 0  # the epoch in decisions of brokers below the bridge release


def check(history: History) -> Iterator[Violation | None]:
    """Judge every committed element of a request with a known principal."""
    acls = AclHistory(history)
    super_users = history.run.super_users or ()
    images: dict[tuple[Identity, int], list[int]] = defaultdict(list)
    for event in history.of_kind["execution_started"]:
        broker_id, incarnation, sequence = event["identity"]
        request = (broker_id, incarnation, sequence), event["epoch"]
        images[request].append(event["image_zxid"])
    epochs = {term.session: term.epoch for term in history.terms}
    for commit, outcome in history.outcomes:
        received = history.received.get(outcome.request_id)
        if received is None or outcome.error != NONE:
            continue
        rights = required_rights(received["api_key"], outcome.element)
        request = identity_of(outcome), epochs.get(commit.session, NO_EPOCH)
        image = _image_of(images.get(request, ()), commit.zxid)
        if rights is None or image < 0:
            continue
        requester = received["principal"], received["client_host"]
        times = [image]
        if request[1] != NO_EPOCH:
            times.append(commit.zxid - (received["api_key"] in WRITES_ACLS))
        accesses = [Access(*requester, *right) for right in rights]
        allowed = any(acls.allows(access, zxid) for access in accesses for zxid in times)
        if allowed or received["principal"] in super_users:
            yield None
            continue
        reason = f"by API {received['api_key']}, whose rights are not known"
        if rights:
            reason = f"without {rights[0][0]} on {rights[0][1]} {rights[0][2]}"
        sentence = (
            f"{outcome.request_id}: {received['principal']} changed {outcome.element} at zxid "
            f"{commit.zxid} {reason}"
        )
        key = f"{outcome.request_id}/{outcome.element}"
        yield SPEC.violation(key, [row_of(received), zxid_row(commit.zxid)], sentence)


def _image_of(images: Sequence[int], committed: int) -> int:
    """Return the zxid of the image on which a commit was decided; -1 if it is not known.

    This is the last image older than the commit, or the last image if none is older.
    """
    before = [image for image in images if image < committed]
    return (before or images or (-1,))[-1]


def _right(operation: str, resource: str) -> str:
    """Return SQL for a right on an element, as in judge.rights.required_rights."""
    type_, name = "'Cluster'", f"'{CLUSTER}'"
    if resource == "Topic":
        type_, name = "'Topic'", "element"
    elif resource == "Config":
        topic = f"startswith(element, '{TOPIC_CONFIG}')"
        type_ = f"if({topic}, 'Topic', 'Cluster')"
        name = f"if({topic}, substring(element, {len(TOPIC_CONFIG) + 1}), '{CLUSTER}')"
    return f"named_struct('o', '{operation}', 't', {type_}, 'n', {name})"


def _rights() -> str:
    """Return SQL for an array of rights, any one of which suffices.

    The array is empty for an unknown API, and null if no ACL is needed.
    """
    cases = [f"WHEN api_key IN {WITHOUT_ACLS} THEN NULL"]
    for api_key, rights in RIGHTS.items():
        if rights[0][1] == "Topic":
            cases.append(f"WHEN api_key = {api_key} AND element LIKE '{TOPIC_BY_ID}%' THEN NULL")
        listed = ", ".join(_right(*right) for right in rights)
        cases.append(f"WHEN api_key = {api_key} THEN array({listed})")
    empty = "CAST(array() AS ARRAY<STRUCT<o: STRING, t: STRING, n: STRING>>)"
    return f"CASE {' '.join(cases)} ELSE {empty} END"


# Kafka's ACL rules are applied to ZooKeeper's log, as in judge/reference_authorizer.py. Decisions
# of brokers below the bridge release have the epoch 0.
_ACCESSES: Final = f"""
WITH secured AS (SELECT run, super_users, allow_if_no_acl FROM runs WHERE super_users IS NOT NULL),
images AS (
  SELECT run, identity, epoch, collect_list(struct(file, line_number, image_zxid)) AS executions
  FROM execution_started GROUP BY run, identity, epoch),
epochs AS (SELECT run, session, max_by(epoch, zxid) AS epoch FROM terms GROUP BY run, session),
done AS (
  SELECT o.run, o.zxid, o.request_id, o.element, r.received AS r, r.received.api_key AS api_key,
    struct(o.broker_id, o.incarnation, o.sequence) AS identity,
    coalesce(f.epoch, 0) AS epoch, s.super_users, s.allow_if_no_acl, o.position
  FROM outcomes o JOIN secured s ON o.run = s.run
  JOIN requests r ON o.run = r.run AND o.request_id = r.request_id
  LEFT JOIN epochs f ON o.run = f.run AND o.session = f.session
  WHERE o.error = 0 AND r.received IS NOT NULL),
known AS (
  SELECT d.*, coalesce(array_max(filter(i.executions, x -> x.image_zxid < d.zxid)),
      array_max(i.executions)).image_zxid AS image_zxid, {_rights()} AS rights
  FROM done d
  JOIN images i ON d.run = i.run AND d.identity = i.identity AND d.epoch = i.epoch),
judged AS (SELECT * FROM known WHERE rights IS NOT NULL AND image_zxid >= 0),
required AS (
  SELECT run, zxid, position, request_id, element, r.principal AS principal,
    r.client_host AS host, at, explode(rights) AS needed
  FROM judged LATERAL VIEW explode(CASE
    WHEN epoch = 0 THEN array(image_zxid)
    WHEN api_key IN {WRITES_ACLS} THEN array(image_zxid, zxid - 1)
    ELSE array(image_zxid, zxid) END) x AS at
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
  SELECT a.*, explode(array_distinct(array(concat('/kafka-acl/', needed.t, '/', needed.n),
    concat('/kafka-acl/', needed.t, '/*')))) AS path FROM required a
  UNION ALL
  SELECT /*+ BROADCAST(l) */ a.*, concat('/kafka-acl-extended/prefixed/', needed.t, '/',
    substring(needed.n, 1, l.length))
  FROM required a JOIN lengths l ON a.run = l.run AND a.needed.t = l.type
  WHERE l.length <= length(needed.n)),
matching AS (
  SELECT c.run, c.zxid, c.position, c.request_id, c.element, c.principal, c.host, c.needed, c.at,
    coalesce(get(filter(s.states, x -> x.since <= c.at),
      size(filter(s.states, x -> x.since <= c.at)) - 1).acls, array()) AS acls
  FROM candidates c LEFT JOIN states s ON c.run = s.run AND c.path = s.path),
per_need AS (
  SELECT run, zxid, position, request_id, element, needed, at, max(principal) AS principal,
    max(host) AS host, flatten(collect_list(acls)) AS acls
  FROM matching GROUP BY run, zxid, position, request_id, element, needed, at),
applicable AS (
  SELECT *, filter(acls,
    x -> x.principal IN (principal, 'User:*') AND x.host IN (host, '*')) AS mine
  FROM per_need),
decided AS (
  SELECT p.run, p.zxid, p.position, bool_or(CASE WHEN size(p.acls) = 0 THEN s.allow_if_no_acl
    ELSE NOT exists(p.mine, x -> lower(x.permissionType) = 'deny'
           AND lower(x.operation) IN (lower(p.needed.o), 'all'))
      AND exists(p.mine, x -> lower(x.permissionType) = 'allow'
           AND lower(x.operation) IN (lower(p.needed.o), 'all')) END) AS allowed
  FROM applicable p JOIN secured s ON p.run = s.run GROUP BY p.run, p.zxid, p.position)"""

INPUTS: Final = (
    *(
        "silver/execution_started",
        "silver/commits",
        "silver/dumps",
        "silver/outcomes",
        "silver/terms",
    ),
    *("gold/requests", "runs"),
)
SQL: Final = f"""{_ACCESSES}, {_STATES}
-- `decided` has no rows for super users and for APIs without known rights.
SELECT j.run, CASE WHEN NOT coalesce(a.allowed, array_contains(super_users, r.principal))
    THEN concat(request_id, '/', element) END AS key,
  array(concat('event/', r.node, '/', r.boot, '/', r.seq), concat('zxid/', j.zxid)) AS rows,
  concat(request_id, ': ', r.principal, ' changed ', element, ' at zxid ', j.zxid,
    coalesce(concat(' without ', get(rights, 0).o, ' on ', get(rights, 0).t, ' ', get(rights, 0).n),
      concat(' by API ', api_key, ', whose rights are not known'))) AS sentence
FROM judged j LEFT JOIN decided a ON j.run = a.run AND j.zxid = a.zxid AND j.position = a.position
"""
