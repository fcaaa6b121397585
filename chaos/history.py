"""Evidence as values: what brokers and controllers said, and what ZooKeeper did.

A run's folder, as `bridgehead up` leaves it: `nodes/<id>/events/*.jsonl`, `cluster.json` (which
names ZooKeeper's data folder and chroot), or `zookeeper/` beside them. Outcomes are read out of
the transaction log, where the controller wrote them; so a claim is checked against an effect, not
against another claim.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from chaos.witness import LoggedOperation, Transaction, read_transactions

OUTCOMES: Final = "/bridgehead/outcomes/"
TOPICS: Final = "/brokers/topics/"
_NEVER: Final = 1 << 62
_NONE: Final = 0

Identity = tuple[int, str, int]


class EvidenceError(Exception):
    """The folder cannot be judged. Its text is one sentence."""


@dataclass(frozen=True, slots=True)
class CommittedOutcome:
    """One element of one request, as a committed multi says it ended."""

    zxid: int
    identity: Identity
    request_id: str
    element: str
    error: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A write request that a client was answered, element by element."""

    request_id: str
    identity: Identity
    api_key: int
    elements: tuple[tuple[str, int], ...]
    image_zxid: int  # the decision looked at this image
    zxid: int  # and the answer stands for this transaction
    validate_only: bool


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A topic znode, from its creation to its deletion. `creator` is whose request made it."""

    born: int
    died: int
    creator: Identity | None


@dataclass(frozen=True, slots=True)
class History:
    """Everything that is judged. `holes` are sentences about missing evidence."""

    transactions: Sequence[Transaction]
    events: Sequence[Mapping[str, Any]]
    holes: tuple[str, ...] = ()
    torn_lines: int = 0  # last lines that killed nodes had begun
    outcomes: tuple[CommittedOutcome, ...] = field(init=False)
    answers: tuple[Answer, ...] = field(init=False)
    topics: Mapping[str, tuple[Lifetime, ...]] = field(init=False)
    # When an element of a request was decided for good: a resend is answered with that.
    settled: Mapping[tuple[Identity, str], int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcomes", tuple(_outcomes(self.transactions)))
        settled: dict[tuple[Identity, str], int] = {}
        for outcome in self.outcomes:
            settled.setdefault((outcome.identity, outcome.element), outcome.zxid)
        object.__setattr__(self, "settled", settled)
        object.__setattr__(self, "answers", tuple(_answers(self.events)))
        object.__setattr__(self, "topics", _topics(self.transactions))


def _outcomes(transactions: Sequence[Transaction]) -> Iterator[CommittedOutcome]:
    for transaction in transactions:
        if transaction.failed:
            continue
        for operation in transaction.operations:
            for entry in _entries(operation):
                for element, error, *_ in entry["elements"]:
                    yield CommittedOutcome(
                        transaction.zxid, _identity(entry["id"]), entry["request"], element, error
                    )


def _entries(operation: LoggedOperation) -> Sequence[Mapping[str, Any]]:
    """Return what an outcome znode lists: one entry for each request; nothing for others."""
    if operation.kind != "create" or not operation.path.startswith(OUTCOMES):
        return ()
    entries: Sequence[Mapping[str, Any]] = json.loads(operation.data or b"{}")["outcomes"]
    return entries


def _identity(parts: Sequence[Any]) -> Identity:
    broker_id, incarnation, sequence = parts
    return broker_id, incarnation, sequence


def _answers(events: Sequence[Mapping[str, Any]]) -> Iterator[Answer]:
    """Join what a broker told its client with what the controller had decided."""
    decided: dict[tuple[str, int], Mapping[str, Any]] = {}
    for event in events:
        if event["kind"] == "request_decided":
            decided[event["request_id"], event["zxid"]] = event
    for event in events:
        if event["kind"] != "answered" or event["error"] is not None or event["closed"]:
            continue
        decision = decided.get((event["request_id"], event["zxid"]))
        if decision is None:
            continue
        yield Answer(
            event["request_id"],
            _identity(decision["identity"]),
            decision["api_key"],
            tuple((element, error) for element, error in decision["elements"]),
            decision["image_zxid"],
            decision["zxid"],
            decision["validate_only"],
        )


def _topics(transactions: Sequence[Transaction]) -> Mapping[str, tuple[Lifetime, ...]]:
    lives: dict[str, list[Lifetime]] = defaultdict(list)
    for transaction in transactions:
        if transaction.failed:
            continue
        creators: dict[str, Identity] = {}
        for operation in transaction.operations:
            for entry in _entries(operation):
                for element, error, *_ in entry["elements"]:
                    if error == _NONE:  # Growing it, or finding it there, comes after.
                        creators.setdefault(element, _identity(entry["id"]))
        for operation in transaction.operations:
            name = _topic_of(operation)
            if name is None:
                continue
            if operation.kind == "create":
                lives[name].append(Lifetime(transaction.zxid, _NEVER, creators.get(name)))
            elif operation.kind == "delete" and lives[name]:
                last = lives[name][-1]
                lives[name][-1] = Lifetime(last.born, transaction.zxid, last.creator)
    return {name: tuple(found) for name, found in lives.items()}


def _topic_of(operation: LoggedOperation) -> str | None:
    if not operation.path.startswith(TOPICS):
        return None
    name = operation.path[len(TOPICS) :]
    return None if "/" in name else name


def read_history(folder: Path) -> History:
    """Read a run's folder.

    Raises:
        EvidenceError: there is nothing to judge. TornLogError: ZooKeeper's log is damaged.
    """
    if not folder.is_dir():
        raise EvidenceError(f"{folder} is not a folder: name the data directory of a run.")
    events, holes, torn = _read_events(folder)
    data_dir, chroot = _zookeeper(folder)
    if not events:
        raise EvidenceError(f"{folder} holds no events: name the data directory of a run.")
    transactions: list[Transaction] = []
    if data_dir is None:
        holes.append("the transaction log of one ZooKeeper member is not in the folder")
    else:
        transactions = read_transactions(data_dir)
        holes += _jumps(transactions)
        transactions = [_without_chroot(each, chroot) for each in transactions]
    try:
        holes += _undecided(events)
        return History(transactions, events, tuple(holes), torn)
    except (KeyError, TypeError, ValueError, AttributeError) as wrong:
        raise EvidenceError(f"An event or an outcome is not as it should be: {wrong!r}.") from wrong


def _jumps(transactions: Sequence[Transaction]) -> Iterator[str]:
    """Name transactions that are missing: an epoch of ZooKeeper's counts from 1 without a gap."""
    previous = 0
    for transaction in transactions:
        zxid = transaction.zxid
        begins_epoch = zxid & 0xFFFFFFFF == 1 and zxid > previous
        if zxid != previous + 1 and not begins_epoch:
            if previous:
                yield f"ZooKeeper's log jumps from zxid {previous} to {zxid}"
            else:
                yield f"ZooKeeper's log begins at zxid {zxid}"
        previous = zxid


def _undecided(events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Name relayed answers whose decision no controller's log holds: they cannot be judged."""
    decided = {(e["request_id"], e["zxid"]) for e in events if e["kind"] == "request_decided"}
    relayed = {
        e["request_id"] for e in events if e["kind"] == "forward_answered" and e["error"] == _NONE
    }
    for event in events:
        if event["kind"] != "answered" or event["error"] is not None or event["closed"]:
            continue
        request_id = event["request_id"]
        if request_id in relayed and (request_id, event["zxid"]) not in decided:
            yield f"the decision behind the answer to {request_id} is missing"


def _zookeeper(folder: Path) -> tuple[Path | None, str]:
    document: dict[str, Any] = {}
    for name in ("cluster.json", "last-cluster.json"):
        if (folder / name).exists():
            document = json.loads((folder / name).read_text(encoding="utf-8"))
            break
    _, slash, chroot = str(document.get("zookeeper_connect", "")).partition("/")
    named = (document.get("zookeeper") or {}).get("data_dir")
    for candidate in filter(None, (named, folder / "zookeeper")):
        logs = [path.parent for path in sorted(Path(candidate).rglob("version-2"))]
        if len(logs) == 1:
            return logs[0], slash + chroot
    return None, slash + chroot


def _without_chroot(transaction: Transaction, chroot: str) -> Transaction:
    if not chroot:
        return transaction
    operations = tuple(
        replace(operation, path=operation.path.removeprefix(chroot))
        for operation in transaction.operations
        if not operation.path or operation.path.startswith(f"{chroot}/")
    )
    return replace(transaction, operations=operations)


def _read_events(folder: Path) -> tuple[list[Mapping[str, Any]], list[str], int]:
    """Return events, holes in `seq` or in the lines, and the count of torn last lines."""
    events: list[Mapping[str, Any]] = []
    holes: list[str] = []
    torn = 0
    expected: dict[tuple[str, str], int] = defaultdict(int)
    for path in sorted(folder.glob("nodes/*/events/*.jsonl")):
        lines = path.read_bytes().split(b"\n")
        # A killed node's last line; what it spoke of was never answered.
        torn += 1 if lines.pop() else 0
        for number, line in enumerate(lines, start=1):
            try:
                event = json.loads(line)
                key = (event["node"], event["boot"])
                sequence = event["seq"]
            except (ValueError, KeyError, TypeError):
                holes.append(f"{path.name}:{number} is not an event")
                continue
            if sequence != expected[key]:
                holes.append(f"node {key[0]} boot {key[1]}: {expected[key]} to {sequence} missing")
            expected[key] = sequence + 1
            events.append(event)
    return events, holes, torn
