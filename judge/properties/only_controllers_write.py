"""Controllers write metadata, brokers write their registration, others write nothing.

A broker below the bridge release (inter.broker.protocol.version) may write configs, quotas, ACLs
and tokens, and create the znodes of topics, through a session of role `direct`. Other brokers may
not. As an exception, any session of a node may create /controller_epoch and the paths that a
cluster needs at its start (role `start_up`).

A KRaft controller that migrates the metadata is no node. From its claim of /controller until the
next election it may write metadata, in the session of the claim. Its znode is persistent: an
operator deletes it to return to ZooKeeper. No node writes /migration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from event_log.commits import DIRECT_WRITERS, ROLES, CommitLine, CommitOperation
from judge import sql
from judge.history import History, SessionOwner, may_write_directly, writes_of
from judge.property import PropertySpec, Violation, zxid_row

SPEC: Final = PropertySpec(
    id="W6",
    name="only_controllers_write",
    statement="a controller may write metadata; a broker may write its registration; a broker "
    "below the bridge release may also write configs, quotas, ACLs and tokens, and create topics; "
    "every node may create the paths that a cluster needs at its start; a KRaft controller may "
    "write metadata in its term, which ends when /controller is deleted; no other session writes "
    "anything",
    witnesses=("commits", "events"),
    row="transactions that wrote below the chroot, except transactions that end a session",
    key="<zxid>",
    gap_blocks_fail=True,  # the gap may hide the session's owner
)


def _is_allowed(operation: CommitOperation, owner: SessionOwner) -> bool:
    if operation.role == "start_up":
        return True
    if operation.role == "registration":
        name = operation.path.rpartition("/")[2]
        if operation.path.startswith(DIRECT_WRITERS):
            is_own = name.partition("-")[0] == owner.node
            return is_own and owner.role == "direct" and owner.writes_directly
        return owner.role == "broker" and name == owner.node
    if operation.role == "epoch" and operation.kind == "create":
        return True
    if operation.role == "migration":
        return False
    return owner.role == "controller" or may_write_directly(operation, owner)


def _is_allowed_outside(operation: CommitOperation, commit: CommitLine, history: History) -> bool:
    """Return whether a session that is no node's may make this write."""
    if operation.role == "migration":
        return True
    term = history.term_at(commit.zxid)
    if term is None or not term.is_kraft:
        return False
    ends_term = operation.role == "controller" and operation.kind == "delete"
    return operation.role != "registration" and (ends_term or term.session == commit.session)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every applied transaction that writes below the chroot and does not end a session."""
    for commit in history.applied:
        writes = writes_of(commit, *ROLES)
        if not writes or commit.kind == "close_session":
            continue
        owner = history.sessions.get(commit.session)
        wrong = [
            o
            for o in writes
            if not (_is_allowed(o, owner) if owner else _is_allowed_outside(o, commit, history))
        ]
        if not wrong:
            yield None
            continue
        of = f"broker {owner.node}, role {owner.role}," if owner else "no known broker"
        sentence = f"zxid {commit.zxid}: session {commit.session} of {of} wrote {wrong[0].path}"
        yield SPEC.violation(commit.zxid, [zxid_row(commit.zxid)], sentence)


INPUTS: Final = ("silver/commits", "silver/sessions", "silver/terms", "runs")
SQL: Final = f"""
WITH written AS (
  SELECT c.run, c.zxid, c.session,
    filter(c.operations, o -> o.kind IN ('create', 'set', 'delete', 'set_acl')
      AND o.role <> '') AS writes
  FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
  WHERE NOT c.failed AND c.kind <> 'close_session'),
judged AS (
  SELECT /*+ BROADCAST(s), BROADCAST(k) */ w.run, w.zxid, w.session, s.node, s.role, w.writes,
    get(filter(w.writes, o -> NOT coalesce(CASE WHEN s.node IS NULL THEN
      o.role = 'migration' OR (k.zxid IS NOT NULL AND o.role <> 'registration'
        AND ((o.role = 'controller' AND o.kind = 'delete') OR k.session = w.session))
    ELSE (
      o.role = 'start_up' OR
      (o.role = 'registration' AND CASE
        WHEN startswith(o.path, '{DIRECT_WRITERS}') THEN s.writes_directly
          AND substring_index(substring_index(o.path, '/', -1), '-', 1) = s.node
        ELSE s.role = 'broker' AND substring_index(o.path, '/', -1) = s.node END) OR
      (o.role = 'admin' AND s.writes_directly AND {sql.IS_DIRECT}) OR
      (o.role = 'epoch' AND o.kind = 'create') OR
      (o.role NOT IN ('registration', 'migration') AND s.role = 'controller'))
    END, false)), 0).path AS wrong
  FROM written w LEFT JOIN sessions s ON w.run = s.run AND w.session = s.session
  LEFT JOIN terms k ON w.run = k.run AND k.is_kraft AND w.zxid >= k.zxid AND w.zxid < k.until
  WHERE size(w.writes) > 0)
SELECT run, CASE WHEN wrong IS NOT NULL THEN CAST(zxid AS STRING) END AS key,
  array(concat('zxid/', zxid)) AS rows,
  concat('zxid ', zxid, ': session ', session, ' of ', CASE WHEN node IS NULL THEN 'no known broker'
    ELSE concat('broker ', node, ', role ', role, ',') END, ' wrote ', wrong) AS sentence
FROM judged
"""
