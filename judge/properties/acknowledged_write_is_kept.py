"""An acknowledged write is committed before its response and still exists at the end.

There are two independent checks. Each acknowledgement must have a committed outcome and, for
topics and configs, an effect. The transactions, replayed over the first dump, must result in the
final dump.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Final

from event_log.commits import CommitLine, CommitOutcome
from judge import sql
from judge.error_codes import OK_CODES
from judge.history import (
    ALTER_CONFIGS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    INCREMENTAL_ALTER_CONFIGS,
    NONE,
    TOPICS,
    History,
    Response,
    row_of,
)
from judge.property import PropertySpec, Violation, zxid_row

SPEC: Final = PropertySpec(
    id="D1",
    name="acknowledged_write_is_kept",
    statement="an acknowledged write is committed before its response, and is kept",
    witnesses=("commits", "events", "clients"),
    row="acknowledged elements in brokers' responses; acknowledged elements in clients' "
    "operations; znodes of the final dump",
    key="<request id>/<element>, <op id>/<element> or znode<path>",
    gap_blocks_fail=True,
)

TOPIC_RESOURCE, BROKER_RESOURCE = "2", "4"
# A deletion commits nothing if another request has already marked the topic for deletion. D5
# (error_code_matches_state) judges whether the topic is gone.
JOINS_OTHERS: Final = frozenset({DELETE_TOPICS})
_WRITES_CONTENT: Final = ("create", "set", "delete")


def check(history: History) -> Iterator[Violation | None]:
    """Judge what brokers acknowledged, what clients saw acknowledged, and the final dump."""
    written = {
        commit.zxid: {o.path for o in commit.operations if o.kind in _WRITES_CONTENT}
        for commit in history.applied
    }
    for response in history.responses:
        if not response.validate_only:
            for element, error in response.elements:
                if error in OK_CODES and element not in response.unchanged:
                    yield _of_response(response, element, history, written)
    yield from _of_clients(history)
    yield from _of_dump(history)


def _of_response(
    response: Response, element: str, history: History, written: Mapping[int, Set[str]]
) -> Violation | None:
    """Judge one element; `written` has the paths that each transaction wrote."""
    outcomes = history.committed.get((response.identity, element), [])
    successes = [(commit, outcome) for commit, outcome in outcomes if outcome.error == NONE]
    wrong = _wrong(response, element, successes, history, written)
    if wrong is None:
        return None
    rows = [row_of(response.responded), row_of(response.decided)]
    rows += [zxid_row(commit.zxid) for commit, _ in successes]
    sentence = f"{response.request_id}: {element} was acknowledged, but {wrong}"
    return SPEC.violation(f"{response.request_id}/{element}", rows, sentence)


def _wrong(
    response: Response,
    element: str,
    successes: list[tuple[CommitLine, CommitOutcome]],
    history: History,
    written: Mapping[int, Set[str]],
) -> str | None:
    if not successes:
        return None if response.api_key in JOINS_OTHERS else "never committed"
    if all(commit.zxid > response.zxid for commit, _ in successes):
        return "its commit came later"
    if response.api_key == CREATE_TOPICS:
        lives = history.topics.get(element, ())
        if not any(life.creator == response.identity for life in lives):
            return "its topic was not created"
    path = _znode(response.api_key, element)
    if path is not None and not any(path in written[commit.zxid] for commit, _ in successes):
        return "its commit did not write its znode"
    return None


def _znode(api_key: int, element: str) -> str | None:
    """Return the znode that the transaction of this element's outcome must write."""
    if api_key == CREATE_PARTITIONS:
        return f"{TOPICS}{element}"
    if api_key not in (ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS):
        return None
    resource_type, _, name = element.partition(":")
    if resource_type == TOPIC_RESOURCE:
        return f"/config/topics/{name}"
    if resource_type == BROKER_RESOURCE:
        return f"/config/brokers/{int(name) if name else '<default>'}"
    return None  # Log levels of a broker are not in ZooKeeper.


def _of_clients(history: History) -> Iterator[Violation | None]:
    """Judge the acknowledged elements that occur in only one operation of all clients."""
    unchanged = {
        (response.api_key, element)
        for response in history.responses
        for element in response.unchanged
    }
    for operation in history.operations:
        for element, error in operation.elements:
            name = (operation.api_key, element)
            if error not in OK_CODES or name not in history.unique_names:
                continue
            if name in unchanged or operation.api_key in JOINS_OTHERS:
                continue
            if name in history.effects:
                yield None
                continue
            assert operation.completed is not None
            rows = [row_of(operation.invoked), row_of(operation.completed)]
            sentence = f"{operation.op_id}: {element} was acknowledged, but never committed"
            yield SPEC.violation(f"{operation.op_id}/{element}", rows, sentence)


def _of_dump(history: History) -> Iterator[Violation | None]:
    """Judge every znode that the final dump has or should have."""
    evidence = history.evidence
    final_zxid = evidence.manifest.zookeeper.final_zxid
    if evidence.final is None or final_zxid is None:
        return
    replayed: dict[str, tuple[int, str]] = {
        path: (line.version, line.digest) for path, line in evidence.first.items()
    }
    last = {path: line.mzxid for path, line in evidence.first.items()}
    for commit in history.applied:
        if commit.zxid > final_zxid:
            break
        for operation in commit.operations:
            if operation.kind in ("create", "set"):
                replayed[operation.path] = (operation.version, operation.digest or "")
                last[operation.path] = commit.zxid
            elif operation.kind == "delete":
                replayed.pop(operation.path, None)
                last[operation.path] = commit.zxid
    final = {path: (line.version, line.digest) for path, line in evidence.final.items()}
    for path in sorted(replayed.keys() | final.keys()):
        expected, dumped = replayed.get(path), final.get(path)
        if expected == dumped:
            yield None
            continue
        sentence = f"{path} differs from the transaction log at the end of the run"
        if dumped is None:
            sentence = f"{path} is missing at the end of the run, but the transaction log has it"
        elif expected is None:
            sentence = f"{path} exists at the end of the run, but not in the transaction log"
        rows = [f"znode{path}", zxid_row(last.get(path, 0))]
        yield SPEC.violation(f"znode{path}", rows, sentence)


# API key 20 is DeleteTopics, see JOINS_OTHERS.
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
    concat(array(responded_row, decided_row), {sql.zxid_rows("done")}) AS rows,
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
