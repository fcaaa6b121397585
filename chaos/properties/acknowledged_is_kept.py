"""D1: what a client was told is done stands in ZooKeeper's log, and still stands at the end.

Two independent paths on purpose: each acknowledgement must have its committed outcome and its
effect; and the transactions, replayed from the first dump, must give the final dump.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Final

from chaos.history import NONE, TOPICS, Answer, History, row_of
from chaos.properties.breach import violation, zxid
from chaos.verdicts import Finding, Property
from event_log.commits import CommitLine, CommitOutcome
from event_log.promises import OK_CODES, Violation

TOPIC_RESOURCE, BROKER_RESOURCE = "2", "4"
CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37
ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 33, 44
# Somebody else's deletion may be joined: then nothing of this request is committed, and D5 judges
# that the topic has gone.
JOINS_OTHERS: Final = frozenset({DELETE_TOPICS})


def check(history: History) -> Finding:
    """Judge acknowledgements of brokers, those of clients, and the final dump."""
    written = {
        commit.zxid: {operation.path for operation in commit.operations}
        for commit in history.applied
    }
    judged: list[Violation | None] = []
    for answer in history.answers:
        if answer.validate_only:
            continue
        for element, error in answer.elements:
            if error in OK_CODES and element not in answer.unchanged:
                judged.append(_answered(answer, element, history, written))
    judged += _told(history)
    judged += _replayed(history)
    return Finding(len(judged), tuple(each for each in judged if each is not None))


def _answered(
    answer: Answer, element: str, history: History, written: Mapping[int, Set[str]]
) -> Violation | None:
    """Judge one element; `written` are the paths that each transaction touched."""
    outcomes = history.committed.get((answer.identity, element), [])
    found = [(commit, outcome) for commit, outcome in outcomes if outcome.error == NONE]
    wrong = _wrong(answer, element, found, history, written)
    if wrong is None:
        return None
    rows = [row_of(answer.answered), row_of(answer.decided)]
    rows += [zxid(commit.zxid) for commit, _ in found]
    key = f"{answer.request_id}/{element}"
    return violation("D1", key, rows, f"{answer.request_id}: {element} was acknowledged {wrong}")


def _wrong(
    answer: Answer,
    element: str,
    found: list[tuple[CommitLine, CommitOutcome]],
    history: History,
    written: Mapping[int, Set[str]],
) -> str | None:
    if not found:
        return None if answer.api_key in JOINS_OTHERS else "and never committed"
    if all(commit.zxid > answer.zxid for commit, _ in found):
        return "before it was committed"
    if answer.api_key == CREATE_TOPICS:
        lives = history.topics.get(element, ())
        if not any(life.creator == answer.identity for life in lives):
            return "and its topic was not made"
    path = _effect(answer.api_key, element)
    if path is not None and not any(path in written[commit.zxid] for commit, _ in found):
        return f"and {path} was not written"
    return None


def _effect(api_key: int, element: str) -> str | None:
    """Return the znode that the multi of this element's outcome must have written."""
    if api_key == CREATE_PARTITIONS:
        return f"{TOPICS}{element}"
    if api_key not in (ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS):
        return None
    resource_type, _, name = element.partition(":")
    if resource_type == TOPIC_RESOURCE:
        return f"/config/topics/{name}"
    if resource_type == BROKER_RESOURCE:
        return f"/config/brokers/{int(name) if name else '<default>'}"
    return None  # A broker's log levels are in no znode.


def _told(history: History) -> Iterator[Violation | None]:
    """Judge what clients were told, by the names that they used once."""
    unchanged = {
        (answer.api_key, element) for answer in history.answers for element in answer.unchanged
    }
    for operation in history.operations:
        for element, error in operation.elements:
            name = (operation.api_key, element)
            if error not in OK_CODES or name not in history.named_once:
                continue
            if name in unchanged or operation.api_key in JOINS_OTHERS:
                continue
            if name in history.effects:
                yield None
                continue
            assert operation.completed is not None
            rows = [row_of(operation.invoked), row_of(operation.completed)]
            sentence = f"{operation.op_id}: {element} was acknowledged and never committed"
            yield violation("D1", f"{operation.op_id}/{element}", rows, sentence)


def _replayed(history: History) -> Iterator[Violation | None]:
    """Judge every znode of the final dump, and every one that should be in it."""
    evidence = history.evidence
    if evidence.final is None or evidence.final_zxid is None:
        return
    replayed: dict[str, tuple[int, str]] = {
        path: (line.version, line.digest) for path, line in evidence.first.items()
    }
    last = {path: line.mzxid for path, line in evidence.first.items()}
    for commit in history.applied:
        if commit.zxid > evidence.final_zxid:
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
        expected, found = replayed.get(path), final.get(path)
        if expected == found:
            yield None
            continue
        what = "is not there" if found is None else "is there"
        if expected is not None and found is not None:
            what = "holds something else"
        sentence = f"{path} {what}, though ZooKeeper's log says otherwise"
        yield violation("D1", f"znode{path}", [f"znode{path}", zxid(last.get(path, 0))], sentence)


PROPERTY: Final = Property("D1", check)
