"""Histories by hand, for the tests of the judge: what was logged, what clients were told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chaos.evidence.reading import Evidence
from chaos.history import History
from chaos.properties import (
    acknowledged_is_kept,
    answer_tells_the_truth,
    at_most_once,
    every_write_is_fenced,
    single_writer,
)
from chaos.verdicts import Property
from event_log.commits import CommitLine, CommitOperation, CommitOutcome, role_of
from event_log.evidence import RunDescription

CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37
ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 33, 44
NONE, UNKNOWN_TOPIC, REQUEST_TIMED_OUT, TOPIC_EXISTS = 0, 3, 7, 36
CONTROLLER, STRANGER = "0xa", "0xb"
ME, ANOTHER = (1, "abc", 1), (2, "def", 9)
Identity = tuple[int, str, int]
Part = CommitOperation | list[CommitOutcome]


def multi(zxid: int, *parts: Part, session: str = CONTROLLER, failed: bool = False) -> CommitLine:
    line = CommitLine(zxid=zxid, session=session, time_ms=0, kind="multi", failed=failed)
    for part in parts:
        if isinstance(part, list):
            line.outcomes.extend(part)
        else:
            line.operations.append(part)
    return line


def operation(kind: str, path: str, *, version: int = 0, data: str = "") -> CommitOperation:
    role = role_of(kind, path)
    return CommitOperation(kind=kind, path=path, role=role, version=version, data=data, digest=data)


def create(path: str) -> CommitOperation:
    return operation("create", path)


def check(version: int = 1) -> CommitOperation:
    return operation("check", "/controller_epoch", version=version)


def outcomes(*ends: tuple[Identity, str, int]) -> list[CommitOutcome]:
    return [
        CommitOutcome(
            broker_id=broker_id,
            incarnation=incarnation,
            sequence=sequence,
            request_id=f"r{sequence}",
            element=name,
            error=error,
        )
        for (broker_id, incarnation, sequence), name, error in ends
    ]


def history(
    commits: Sequence[CommitLine],
    events: Sequence[Mapping[str, Any]] = (),
    holes: Mapping[str, list[str]] | None = None,
) -> History:
    evidence = Evidence(RunDescription(run_id="r"), events=list(events), commits=list(commits))
    evidence.holes.update(holes or {})
    return History(evidence)


ELECTED = multi(
    1, create("/controller"), operation("set", "/controller_epoch", version=1, data="1")
)


def created(zxid: int, name: str = "orders", by: Identity = ME) -> CommitLine:
    effect = create(f"/brokers/topics/{name}")
    return multi(zxid, check(), outcomes((by, name, NONE)), effect)


def removed(zxid: int, name: str = "orders") -> CommitLine:
    return multi(zxid, check(), operation("delete", f"/brokers/topics/{name}"))


def told(
    error: int,
    *,
    zxid: int,
    image_zxid: int = 1,
    api_key: int = CREATE_TOPICS,
    identity: Identity = ME,
    name: str = "orders",
) -> list[Mapping[str, Any]]:
    request_id = f"r{identity[2]}"
    decided = {
        "kind": "request_decided",
        "request_id": request_id,
        "identity": list(identity),
        "api_key": api_key,
        "image_zxid": image_zxid,
        "zxid": zxid,
        "elements": [[name, error]],
        "unchanged": [],
        "error": NONE,
        "validate_only": False,
        "node": "1",
        "boot": "abc",
        "seq": 2 * identity[2],
    }
    answered = {"kind": "answered", "request_id": request_id, "error": None, "closed": False}
    return [decided, {**decided, **answered, "zxid": zxid, "seq": 2 * identity[2] + 1}]


def violations(
    of: Property, commits: Sequence[CommitLine], events: Sequence[Mapping[str, Any]] = ()
) -> tuple[str, ...]:
    found = of.check(history([ELECTED, *commits], events)).violations
    return tuple(violation.sentence for violation in found)


W1, W2 = single_writer.PROPERTY, every_write_is_fenced.PROPERTY
D1, D3, D5 = acknowledged_is_kept.PROPERTY, at_most_once.PROPERTY, answer_tells_the_truth.PROPERTY
