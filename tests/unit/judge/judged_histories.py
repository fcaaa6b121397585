"""Builds small histories for tests of the judge: transactions, decisions and responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from event_log.commits import CommitLine, CommitOperation, CommitOutcome, role_of
from event_log.evidence import Manifest, ManifestFile, RunDescription, ZooKeeperEvidence
from judge.evidence.reading import Evidence
from judge.history import CREATE_TOPICS, NONE, History
from judge.properties import PROPERTIES
from judge.property import Violation

UNKNOWN_TOPIC, REQUEST_TIMED_OUT, TOPIC_EXISTS = 3, 7, 36
CONTROLLER, OTHER_SESSION = "0xa", "0xb"
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
    gaps: Mapping[str, list[str]] | None = None,
) -> History:
    manifest = Manifest(
        run=RunDescription(run_id="r"),
        sealed_ms=0,
        zookeeper=ZooKeeperEvidence(logs=True),
        files=[ManifestFile(path="node=1/e", kind="node", bytes=0, sha256="")],
    )
    evidence = Evidence(manifest, events=list(events), commits=list(commits))
    evidence.gaps.update(gaps or {})
    return History(evidence)


ELECTED = multi(
    1, create("/controller"), operation("set", "/controller_epoch", version=1, data="1")
)


def created(zxid: int, name: str = "orders", by: Identity = ME) -> CommitLine:
    effect = create(f"/brokers/topics/{name}")
    return multi(zxid, check(), outcomes((by, name, NONE)), effect)


def removed(zxid: int, name: str = "orders") -> CommitLine:
    return multi(zxid, check(), operation("delete", f"/brokers/topics/{name}"))


def responded(
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
    end = {"kind": "responded", "request_id": request_id, "error": None, "closed": False}
    return [decided, {**decided, **end, "zxid": zxid, "seq": 2 * identity[2] + 1}]


def rows_of(
    of: str, commits: Sequence[CommitLine], events: Sequence[Mapping[str, Any]] = ()
) -> list[Violation | None]:
    """Return what the check of the property with this id returns for each row."""
    (module,) = (property_ for property_ in PROPERTIES if property_.SPEC.id == of)
    return list(module.check(history([ELECTED, *commits], events)))


def violations(
    of: str, commits: Sequence[CommitLine], events: Sequence[Mapping[str, Any]] = ()
) -> tuple[str, ...]:
    """Return a sentence for each violation of a property."""
    return tuple(row.sentence for row in rows_of(of, commits, events) if row is not None)
