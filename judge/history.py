"""Joins the evidence: responses with decisions, outcomes with requests, terms with sessions.

A pure view of `judge.evidence.reading.Evidence`. Outcomes come from ZooKeeper's transaction log, so
the reports of nodes are compared with what ZooKeeper committed, not with other reports.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from event_log.commits import DIRECT, WRITES, CommitLine, CommitOperation, CommitOutcome
from judge.evidence.reading import Event as Event  # re-exported for the properties
from judge.evidence.reading import Evidence

TOPICS: Final = "/brokers/topics/"
CONTROLLER: Final = "/controller"
EPOCH: Final = "/controller_epoch"
NEVER: Final = 1 << 62
BRIDGE: Final = (3, 4)  # the first release whose brokers forward
NONE: Final = 0
PAUSES: Final = ("pause", "block")  # faults that hold a process, or its event loop
CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37
ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 33, 44

Identity = tuple[int, str, int]
Boot = tuple[str, str]  # node, boot (the life of one process)


@dataclass(frozen=True, slots=True)
class Response:
    """A decision that was relayed to a client, with the error code of each element."""

    request_id: str
    identity: Identity
    api_key: int
    elements: tuple[tuple[str, int], ...]
    unchanged: frozenset[str]
    error: int
    image_zxid: int  # of the image that the decision used
    zxid: int  # of the transaction that the response reports
    validate_only: bool
    decided: Event
    responded: Event


@dataclass(frozen=True, slots=True)
class ClientOperation:
    """A request of a workload; `elements` is empty if it got no response."""

    op_id: str
    api_key: int
    requested: tuple[str, ...]
    outcome: str  # ok, fail (a definite error), or info (unknown)
    elements: tuple[tuple[str, int], ...]
    invoked: Event
    completed: Event | None


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The zxids of a topic's creation and deletion. `creator` identifies the creating request."""

    born: int
    died: int
    creator: Identity | None


@dataclass(frozen=True, slots=True)
class Term:
    """One controller's term, from its election to the next election."""

    epoch: int
    session: str
    zxid: int
    until: int  # the next election's zxid
    is_kraft: bool = False  # a KRaft controller's, which migrates the metadata


@dataclass(frozen=True, slots=True)
class SessionOwner:
    """The process that opened a ZooKeeper session, according to its own events."""

    node: str
    boot: str
    role: str  # broker, controller, direct
    writes_directly: bool = False  # its protocol level is below the bridge release


def identity_of(outcome: CommitOutcome) -> Identity:
    """Return the identity of the request that an outcome belongs to."""
    return outcome.broker_id, outcome.incarnation, outcome.sequence


def boot_of(event: Event) -> Boot:
    """Return the node and the boot that wrote an event."""
    return event["node"], event["boot"]


def place_of(event: Event) -> str:
    """Return the place of an event, in the form that keys of violations have."""
    return f"{event['node']}/{event['boot']}/{event['seq']}"


def row_of(event: Event) -> str:
    """Return the place of an event, in the form that rows of violations have."""
    return f"event/{place_of(event)}"


def writes_of(commit: CommitLine, *roles: str) -> list[CommitOperation]:
    """Return a transaction's operations that wrote a path of one of these roles."""
    return [o for o in commit.operations if o.kind in WRITES and o.role in roles]


class History:
    """Everything that is judged. Derived views are computed once, on first use."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.run = evidence.manifest.run
        self.events: Sequence[Event] = evidence.events

    @cached_property
    def applied(self) -> tuple[CommitLine, ...]:
        """Transactions of this run that changed something, in the order of their zxids."""
        first = self.evidence.manifest.zookeeper.first_zxid
        return tuple(c for c in self.evidence.commits if c.zxid > first and not c.failed)

    @cached_property
    def outcomes(self) -> tuple[tuple[CommitLine, CommitOutcome], ...]:
        """Every outcome that ZooKeeper committed in this run, with its transaction."""
        return tuple((commit, outcome) for commit in self.applied for outcome in commit.outcomes)

    @cached_property
    def committed(self) -> Mapping[tuple[Identity, str], list[tuple[CommitLine, CommitOutcome]]]:
        """The outcomes of each element of each request, in the order of their zxids."""
        committed: dict[tuple[Identity, str], list[tuple[CommitLine, CommitOutcome]]]
        committed = defaultdict(list)
        for commit, outcome in self.outcomes:
            committed[identity_of(outcome), outcome.element].append((commit, outcome))
        return dict(committed)

    @cached_property
    def of_kind(self) -> Mapping[str, list[Event]]:
        """The events of each kind; empty for a kind that did not occur."""
        events: dict[str, list[Event]] = defaultdict(list)
        for event in self.events:
            events[event["kind"]].append(event)
        return events

    @cached_property
    def received(self) -> Mapping[str, Event]:
        """The `request_received` event of each request id."""
        return {e["request_id"]: e for e in self.of_kind["request_received"]}

    @cached_property
    def work_ended_ns(self) -> int:
        """When the work of the run ends. After that, all nodes are stopped.

        In a scenario, this is the clients' last completion; in other runs, the event `run_ending`.
        """
        if self.run.scenario is None:
            return min((e["mono_ns"] for e in self.of_kind["run_ending"]), default=NEVER)
        return max((o.completed["mono_ns"] for o in self.operations if o.completed), default=0)

    @cached_property
    def paused(self) -> frozenset[str]:
        """The nodes that a fault paused or blocked.

        The clock of a paused node runs on, so the time limits of its requests are not judged.
        """
        return frozenset(
            e["target"] for e in self.of_kind["fault_injected"] if e["action"] in PAUSES
        )

    @cached_property
    def responses(self) -> tuple[Response, ...]:
        """Every response that a broker relayed, joined with its decision."""
        decided: dict[tuple[str, int], Event] = {}
        for event in self.of_kind["request_decided"]:
            decided.setdefault((event["request_id"], event["zxid"]), event)
        responses = []
        for event in self.of_kind["responded"]:
            decision = decided.get((event["request_id"], event["zxid"]))
            if decision is not None and not event["closed"] and event["error"] is None:
                responses.append(_response(decision, event))
        return tuple(responses)

    @cached_property
    def operations(self) -> tuple[ClientOperation, ...]:
        """The clients' operations: each invocation with its completion."""
        completed: dict[str, Event] = {}
        for event in self.evidence.clients:
            if event["kind"] == "client_completed":
                completed.setdefault(event["op_id"], event)
        return tuple(
            _operation(event, completed.get(event["op_id"]))
            for event in self.evidence.clients
            if event["kind"] == "client_invoked"
        )

    @cached_property
    def effects(self) -> Mapping[tuple[int, str], list[tuple[CommitLine, CommitOutcome]]]:
        """The successful outcomes by API and element, for joins with the operations of clients."""
        effects: dict[tuple[int, str], list[tuple[CommitLine, CommitOutcome]]] = defaultdict(list)
        for commit, outcome in self.outcomes:
            request = self.received.get(outcome.request_id)
            if request is not None and outcome.error == NONE:
                effects[request["api_key"], outcome.element].append((commit, outcome))
        return dict(effects)

    @cached_property
    def unique_names(self) -> frozenset[tuple[int, str]]:
        """Pairs of API and element that occur in only one operation.

        That operation caused all effects of the pair.
        """
        requested = Counter(
            (operation.api_key, element)
            for operation in self.operations
            for element in operation.requested
        )
        return frozenset(name for name, times in requested.items() if times == 1)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Every controller's term: the one at the start of the run, then one for each election."""
        elected: list[tuple[int, str, int, bool]] = []
        held, epoch = self.evidence.first.get(CONTROLLER), self.evidence.first.get(EPOCH)
        if held is not None and epoch is not None and held.ephemeral_owner is not None:
            elected.append((epoch_of(epoch.data), held.ephemeral_owner, held.czxid, False))
        for commit in self.applied:
            created = [o for o in writes_of(commit, "controller") if o.kind == "create"]
            raised = [o for o in writes_of(commit, "epoch") if o.kind == "set"]
            if created and raised:
                is_kraft = commit.session not in self.sessions and is_krafts(created[-1])
                elected.append((epoch_of(raised[0].data), commit.session, commit.zxid, is_kraft))
        ends = [zxid for _, _, zxid, _ in elected[1:]] + [NEVER]
        return tuple(
            Term(epoch, session, zxid, end, is_kraft)
            for (epoch, session, zxid, is_kraft), end in zip(elected, ends, strict=False)
        )

    def term_at(self, zxid: int) -> Term | None:
        """Return the last term that began at this zxid or before."""
        at = bisect_right(self.terms, zxid, key=lambda term: term.zxid) - 1
        return self.terms[at] if at >= 0 else None

    def is_written_by_kraft(self, commit: CommitLine) -> bool:
        """Return whether a KRaft controller made this transaction, in its term.

        Its session is the one that claimed /controller. Kafka does not fence all of its writes.
        """
        term = self.term_at(commit.zxid)
        return term is not None and term.is_kraft and term.session == commit.session

    @cached_property
    def sessions(self) -> Mapping[str, SessionOwner]:
        """Owners of ZooKeeper sessions, by session."""
        below = {boot_of(e) for e in self.of_kind["protocol_level"] if is_below(e["level"])}
        return {
            e["session"]: SessionOwner(e["node"], e["boot"], e["role"], boot_of(e) in below)
            for e in self.of_kind["session_opened"]
        }

    @cached_property
    def admin_writes(self) -> tuple[tuple[CommitLine, list[CommitOperation]], ...]:
        """Applied transactions that wrote metadata, each with the operations that wrote it.

        Transactions are omitted if all these operations are direct writes that W6
        (only_controllers_write) allows, or if a KRaft controller made them in its term.
        """
        result = []
        for commit in self.applied:
            owner = self.sessions.get(commit.session)
            writes = writes_of(commit, "admin")
            is_direct = owner and all(may_write_directly(o, owner) for o in writes)
            if writes and not is_direct and not self.is_written_by_kraft(commit):
                result.append((commit, writes))
        return tuple(result)

    @cached_property
    def topics(self) -> Mapping[str, tuple[Lifetime, ...]]:
        """The lifetimes of every topic znode, in order."""
        lives: dict[str, list[Lifetime]] = defaultdict(list)
        for path, line in self.evidence.first.items():
            if (name := topic_of(path)) is not None:
                lives[name].append(Lifetime(line.czxid, NEVER, None))
        for commit in self.applied:
            creators: dict[str, Identity] = {}
            for outcome in commit.outcomes:
                if outcome.error == NONE:  # The first success created the topic.
                    creators.setdefault(outcome.element, identity_of(outcome))
            for operation in commit.operations:
                name = topic_of(operation.path)
                if name is None:
                    continue
                if operation.kind == "create":
                    lives[name].append(Lifetime(commit.zxid, NEVER, creators.get(name)))
                elif operation.kind == "delete" and lives[name]:
                    last = lives[name][-1]
                    lives[name][-1] = Lifetime(last.born, commit.zxid, last.creator)
        return {name: tuple(life) for name, life in lives.items()}


def _response(decided: Event, responded: Event) -> Response:
    broker_id, incarnation, sequence = decided["identity"]
    return Response(
        decided["request_id"],
        (broker_id, incarnation, sequence),
        decided["api_key"],
        tuple((element, error) for element, error in decided["elements"]),
        frozenset(decided["unchanged"]),
        decided["error"],
        decided["image_zxid"],
        decided["zxid"],
        decided["validate_only"],
        decided,
        responded,
    )


def _operation(invoked: Event, completed: Event | None) -> ClientOperation:
    elements = completed["elements"] if completed is not None else ()
    return ClientOperation(
        invoked["op_id"],
        invoked["api_key"],
        tuple(invoked["elements"]),
        completed["outcome"] if completed is not None else "info",
        tuple((element, error) for element, error in elements),
        invoked,
        completed,
    )


def may_write_directly(operation: CommitOperation, owner: SessionOwner) -> bool:
    """Return whether this is a direct write that the owner's protocol level allows."""
    if owner.role != "direct" or not owner.writes_directly:
        return False
    if operation.kind == "create" and topic_of(operation.path) is not None:
        return True  # The controller writes what is below the topic's znode.
    return operation.path.startswith(DIRECT)


def is_krafts(created: CommitOperation) -> bool:
    """Return whether a KRaft controller created /controller: persistent, with its own epoch."""
    try:
        epoch = json.loads(created.data or "{}").get("kraftControllerEpoch", -1)
    except (AttributeError, ValueError, RecursionError):
        return False
    return not created.ephemeral and isinstance(epoch, int) and epoch >= 0


def is_below(level: str) -> bool:
    """Return whether a level such as `3.3-IV3` is below the bridge release; False if malformed."""
    match = re.match(r"(\d{1,3})\.(\d{1,3})", level)
    return match is not None and (int(match[1]), int(match[2])) < BRIDGE


def epoch_of(data: Any) -> int:
    """Return the epoch in a znode's content; -1 if it is not a number."""
    text = str(data)
    return int(text) if text.isdecimal() and len(text) < 12 else -1


def topic_of(path: str) -> str | None:
    """Return the topic's name if the path is the znode of a topic, else None."""
    if not path.startswith(TOPICS):
        return None
    name = path[len(TOPICS) :]
    return None if "/" in name else name
