"""Turns the evidence of a run into slices that spec/Trace.tla explains. Pure.

A slice has the history of one request: its events, the terms of controllers during it, and the
multis that may contain its elements. Elements with the same history are one topic of the slice.
What other requests did to the commit counter and to the elements is given, not explained.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from event_log.commits import CommitLine
from judge.evidence.reading import Event, Evidence

# The kinds of events that are explained, by their roles here. Nothing else here names an event.
SENT: Final = "forward_sent"
REPLIED: Final = "forward_replied"
RECEIVED: Final = "envelope_received"
REJECTED: Final = "envelope_rejected"
STARTED: Final = "execution_started"
DECIDED: Final = "request_decided"
RESPONDED: Final = "responded"
COMMIT_SENT: Final = "commit_sent"
COMMIT_UNKNOWN: Final = "commit_unknown"
COMMIT_DONE: Final = "commit_acknowledged"
ACTIVE: Final = "became_active"
RESIGNED: Final = "resigned"
CLAIMED: Final = "claim_sent"
SESSION: Final = "session_opened"
DIGEST: Final = "response_sha256"

_OUTCOME: Final = re.compile(r"/bridgehead/outcomes/(\d+)$")
_FLOOR: Final = re.compile(r"/bridgehead/floors/(\d+)-([^/]+)$")
TOPICS: Final = "/brokers/topics/"
_TOPIC: Final = re.compile(TOPICS + r"([^/]+)$")
COUNTER: Final = "/bridgehead/commit"
_CONTROLLER: Final = "/controller"
_EPOCH: Final = "/controller_epoch"
CREATE_TOPICS: Final = 19
_NONE, _TIMED_OUT, _EXISTS, _NOT_CONTROLLER = 0, 7, 36, 41
_FREE: Final = "?"
# More elements with different histories than this make a slice too large; it is then not judged.
CLASSES_MAX: Final = 8

Identity = tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class Slice:
    """The history of one request, or of all requests of a run.

    Slices of one `shape` are explained together.
    """

    name: str
    requests: tuple[Mapping[str, Any], ...]  # as Request in spec/Forwarding.tla
    topics: tuple[str, ...]
    epochs: int
    nodes: int
    events: tuple[Mapping[str, Any], ...]
    commits: tuple[Mapping[str, Any], ...]
    texts: tuple[tuple[str, ...], tuple[str, ...]]  # how to print each entry
    is_whole: bool = False

    @property
    def shape(self) -> tuple[str, tuple[str, ...]]:
        """The kind of the first request, and the topics."""
        return self.requests[0]["kind"], self.topics


@dataclass(slots=True)
class Term:
    """The term of a controller: from its election to the end of its ownership."""

    epoch: int
    session: str
    zxid: int  # of the election
    version: int  # of /controller_epoch
    node: str = ""
    boot: str = ""
    claimed_ns: int = 0
    over_ns: int = 1 << 62  # resigned, or its process ended
    ended: tuple[int, str] | None = None  # zxid and kind of the end of its ownership


@dataclass(slots=True)
class Commit:
    """A transaction that sets the commit counter."""

    number: int
    zxid: int
    session: str
    fence: int  # the version of /controller_epoch that operation 0 checked; -1: none
    elements: dict[Identity, set[str]] = field(default_factory=dict)
    floors: dict[tuple[str, str], int] = field(default_factory=dict)  # stored, by process
    pruned: list[int] = field(default_factory=list)  # commits whose outcomes are deleted


class Run:
    """The evidence of a run, joined for projections."""

    def __init__(self, evidence: Evidence) -> None:
        first = evidence.manifest.zookeeper.first_zxid
        self.lines = [c for c in evidence.commits if c.zxid > first and not c.failed]
        self.rejected: dict[str, list[int]] = defaultdict(list)  # zxids, by session
        for line in evidence.commits:
            if line.failed:
                self.rejected[line.session].append(line.zxid)
        self.events = sorted(
            (e for e in evidence.events if "identity" in e or e["kind"] in _KINDS),
            key=lambda e: (e["mono_ns"], e["seq"]),
        )
        self.ends = {
            (e["ended_node"], e["ended_boot"]): e["mono_ns"]
            for e in evidence.events
            if e["kind"] == "node_ended"
        }
        self.stopped = {(e["node"], e["boot"]) for e in evidence.events if e["kind"] == "stopped"}
        self.boots: dict[str, list[tuple[int, str]]] = defaultdict(list)
        self.of_request: dict[str, list[Event]] = defaultdict(list)
        self.of_boot: dict[tuple[str, str], list[Event]] = defaultdict(list)
        self._join_events(evidence.events)
        self.seqs = {boot: [e["seq"] for e in events] for boot, events in self.of_boot.items()}
        self.offices = {
            boot: [e for e in events if e["kind"] in (ACTIVE, RESIGNED)]
            for boot, events in self.of_boot.items()
        }
        self.commits = [c for line in self.lines if (c := _commit_of(line)) is not None]
        self.by_number = {(c.session, c.number): c for c in self.commits}
        self.by_identity: dict[Identity, list[Commit]] = defaultdict(list)
        for commit in self.commits:
            for identity in commit.elements:
                self.by_identity[identity].append(commit)
        self.zxids = [line.zxid for line in self.lines]
        self.terms = self._terms()
        self.topics = self._topic_changes()

    def _join_events(self, events: Iterable[Event]) -> None:
        for event in events:
            if event["kind"] == "started":
                self.boots[event["node"]].append((event["mono_ns"], event["boot"]))
        for event in self.events:
            if "request_id" in event:
                self.of_request[event["request_id"]].append(event)
            if event["kind"] in _CONTROLLER_KINDS:
                self.of_boot[event["node"], event["boot"]].append(event)
        for boots in self.boots.values():
            boots.sort()

    def _terms(self) -> list[Term]:
        terms = []
        by_session: dict[str, Term] = {}
        owner: Term | None = None
        of_nodes = {e["session"] for e in self.events if e["kind"] == SESSION}
        for line in self.lines:
            paths = {o.path: o for o in line.operations if o.kind in ("create", "set", "delete")}
            epoch = paths.get(_EPOCH)
            if epoch is not None and epoch.kind == "set":
                term = Term(int(epoch.data or 0), line.session, line.zxid, epoch.version)
                if paths.get(_CONTROLLER) is None or paths[_CONTROLLER].kind != "create":
                    term.session = "no election"  # The epoch must be set by the claim.
                terms.append(term)
                by_session[line.session] = owner = term
            elif line.kind == "close_session" and line.session in by_session:
                term = by_session[line.session]
                term.ended = term.ended or (line.zxid, "ended")
            elif owner and _is_deletion_by_another(line, owner):
                # Only another program may do that.
                owner.ended = line.zxid, "node_deleted" if line.session in of_nodes else "deleted"
        self._find_nodes(terms)
        return terms

    def _find_nodes(self, terms: list[Term]) -> None:
        owners = {e["session"]: e for e in self.events if e["kind"] == SESSION}
        claims: dict[tuple[str, str, int], Event] = {
            (e["node"], e["boot"], e["epoch"]): e for e in self.events if e["kind"] == CLAIMED
        }
        for term in terms:
            opened = owners.get(term.session)
            if opened is None:
                continue
            term.node, term.boot = opened["node"], opened["boot"]
            claim = claims.get((term.node, term.boot, term.epoch), opened)
            term.claimed_ns = claim["mono_ns"]
            term.over_ns = self.ends.get((term.node, term.boot), 1 << 62)
            for event in self.of_boot[term.node, term.boot]:
                if event["kind"] == RESIGNED and event["epoch"] == term.epoch:
                    term.over_ns = min(term.over_ns, event["mono_ns"])

    def _topic_changes(self) -> dict[str, list[tuple[int, bool]]]:
        changes: dict[str, list[tuple[int, bool]]] = defaultdict(list)
        for line in self.lines:
            for operation in line.operations:
                if operation.kind in ("create", "delete") and (m := _TOPIC.match(operation.path)):
                    changes[m[1]].append((line.zxid, operation.kind == "create"))
        return changes

    def exists(self, topic: str, zxid: int) -> bool:
        """Return whether a topic exists after the transaction `zxid`."""
        changes = self.topics.get(topic, [])
        at = bisect_right(changes, (zxid, True))
        return changes[at - 1][1] if at else False

    def may_exist(self, topic: str, first: int, last: int) -> set[bool]:
        """Return the states of a topic between two transactions."""
        changes = self.topics.get(topic, [])
        at, end = bisect_right(changes, (first, True)), bisect_right(changes, (last, True))
        return {self.exists(topic, first), *(exists for _, exists in changes[at:end])}

    def identities(self) -> list[tuple[str, Identity]]:
        """Return the request ids and identities of all forwarded requests, in order."""
        identities: dict[str, Identity] = {}
        for event in self.events:
            if event["kind"] in (SENT, RECEIVED, STARTED) and event.get("epoch") != 0:
                identities.setdefault(event["request_id"], _identity(event))
        return list(identities.items())


REQUEST_KINDS: Final = frozenset({SENT, REPLIED, RECEIVED, REJECTED, STARTED, DECIDED, RESPONDED})
_CONTROLLER_KINDS: Final = frozenset(
    {COMMIT_SENT, COMMIT_UNKNOWN, COMMIT_DONE, ACTIVE, RESIGNED, STARTED, DECIDED}
)
_KINDS: Final = REQUEST_KINDS | _CONTROLLER_KINDS | {CLAIMED, SESSION}


def _identity(event: Event) -> Identity:
    broker, incarnation, sequence = event["identity"]
    return broker, incarnation, sequence


def _commit_of(line: CommitLine) -> Commit | None:
    number = next(
        (int(o.data) for o in line.operations if o.path == COUNTER and o.kind == "set" and o.data),
        None,
    )
    if number is None:
        return None
    fence = next((o.version for o in line.operations if o.kind == "check" and o.path == _EPOCH), -1)
    commit = Commit(number, line.zxid, line.session, fence)
    for outcome in line.outcomes:
        identity = outcome.broker_id, outcome.incarnation, outcome.sequence
        commit.elements.setdefault(identity, set()).add(outcome.element)
    for operation in line.operations:
        if operation.kind == "delete" and (match := _OUTCOME.match(operation.path)):
            commit.pruned.append(int(match[1]))
        elif operation.kind in ("create", "set") and (match := _FLOOR.match(operation.path)):
            commit.floors[match[1], match[2]] = int(operation.data or 0)
    return commit


def _is_deletion_by_another(line: CommitLine, owner: Term) -> bool:
    return (
        owner.ended is None
        and line.session != owner.session
        and any(o.kind == "delete" and o.path == _CONTROLLER for o in line.operations)
    )


class Projection:
    """Builds the slice of one request."""

    def __init__(self, run: Run, request_id: str, identity: Identity) -> None:
        self._run = run
        self._id = request_id
        self._identity = identity
        self._own = [e for e in run.of_request[request_id] if e["kind"] in REQUEST_KINDS]
        self._commits = run.by_identity.get(identity, [])
        self._first_ns = self._own[0]["mono_ns"]
        self._last_ns = self._own[-1]["mono_ns"]
        self._terms = self._involved_terms()
        self._base = self._terms[0].epoch - 1 if self._terms else 0
        self._nodes = {str(identity[0]): 1}
        for term in self._terms:
            self._nodes.setdefault(term.node, len(self._nodes) + 1)
        for event in self._own:
            self._nodes.setdefault(event["node"], len(self._nodes) + 1)

    def build(self) -> Slice | None:
        """Return the slice; None if it has too many elements with different histories."""
        elements = self._elements()
        classes = self._classes(elements)
        if len(classes) > CLASSES_MAX:
            return None
        self._class_of = {e: f"t{i}" for i, members in enumerate(classes) for e in members}
        self._representative = {f"t{i}": members[0] for i, members in enumerate(classes)}
        windows = [self._window(e) for e in self._own if e["kind"] == STARTED]
        events = self._events(windows)
        commits = self._transactions(windows)
        topics = tuple(self._representative) or ("t0",)
        return Slice(
            name=self._id,
            requests=(request_record(1, 1, self._kind(), topics),),
            topics=topics,
            epochs=max((t.epoch - self._base for t in self._terms), default=1),
            nodes=len(self._nodes),
            events=tuple(entry for entry, _ in events),
            commits=tuple(entry for entry, _ in commits),
            texts=(tuple(t for _, t in events), tuple(t for _, t in commits)),
        )

    def _kind(self) -> str:
        started = next((e for e in self._own if e["kind"] == STARTED), None)
        return "create" if started and started["api_key"] == CREATE_TOPICS else "alter"

    def _involved_terms(self) -> list[Term]:
        terms = self._run.terms
        last = max((i for i, t in enumerate(terms) if t.claimed_ns <= self._last_ns), default=-1)
        epochs = {e["epoch"] for e in self._own if e["kind"] == STARTED}
        first = last
        for i, term in enumerate(terms[: last + 1]):
            if term.over_ns >= self._first_ns or term.epoch in epochs:
                first = min(first, i)
        return terms[max(first, 0) : last + 1]

    def _elements(self) -> list[str]:
        elements: dict[str, None] = {}
        for commit in self._commits:
            elements.update(dict.fromkeys(sorted(commit.elements[self._identity])))
        for event in self._own:
            if event["kind"] == DECIDED:
                elements.update((name, None) for name, _ in event["elements"])
        return list(elements)

    def _classes(self, elements: Sequence[str]) -> list[list[str]]:
        """Group the elements with equal histories, in the order of their commits."""
        decided = [e for e in self._own if e["kind"] == DECIDED]
        codes = [dict(map(tuple, e["elements"])) for e in decided]
        unchanged = [set(e["unchanged"]) for e in decided]
        started = [e for e in self._own if e["kind"] == STARTED]
        zxids = [c.zxid for c in self._commits]
        members: dict[tuple[object, ...], list[str]] = defaultdict(list)
        for element in elements:
            numbers = tuple(
                c.number for c in self._commits if element in c.elements[self._identity]
            )
            changes: tuple[object, ...] = ()
            if self._kind() == "create":
                end = max([*zxids, *(e["zxid"] for e in decided)], default=0)
                begin = min((e["image_zxid"] for e in started), default=0)
                changes = (
                    self._run.exists(element, begin),
                    *(c for c in self._run.topics.get(element, ()) if begin < c[0] <= end),
                )
            history = (
                numbers or (1 << 62,),
                tuple(code.get(element, -1) for code in codes),
                tuple(element in names for names in unchanged),
                changes,
            )
            members[history].append(element)
        return [members[history] for history in sorted(members, key=lambda h: (h[0], str(h[1:])))]

    # --- Windows: the multis that may have elements of the request ------------------------------

    def _window(self, started: Event) -> tuple[Event, list[Event], Event | None]:
        """Return an execution, the commit events after it that matter, and its decision."""
        life = started["node"], started["boot"]
        boot = self._run.of_boot[life]
        at = bisect_right(self._run.seqs[life], started["seq"])
        decided = None
        later: list[Event] = []
        term = self._term(started["epoch"])
        numbers = {c.number for c in self._commits if term and c.session == term.session}
        last = max(numbers, default=-1)
        for event in islice(boot, at, None):
            kind = event["kind"]
            if kind == RESIGNED:
                break
            if kind == STARTED and event["request_id"] == self._id:
                break
            if kind == DECIDED and event["request_id"] == self._id:
                decided = event
                break
            if kind in (COMMIT_SENT, COMMIT_UNKNOWN, COMMIT_DONE):
                later.append(event)
        if decided is not None:
            later = [e for e in later if e["number"] <= last]
        acknowledged = {e["number"] for e in later if e["kind"] == COMMIT_DONE}
        if decided is None and last in acknowledged:
            later = [e for e in later if e["number"] <= last]
        return started, later, decided

    def _term(self, epoch: int) -> Term | None:
        return next((t for t in self._terms if t.epoch == epoch), None)

    # --- The nodes' events ---------------------------------------------------------------------

    def _events(self, windows: Sequence[tuple[Event, list[Event], Event | None]]) -> list[Entry]:
        chosen = {_key(e): e for e in self._own}
        started: dict[Any, tuple[list[Event], Event | None]] = {}
        for event, commits, decided in windows:
            started[_key(event)] = commits, decided
            chosen |= {_key(e): e for e in commits}
        for term in self._terms:
            for event in self._run.offices.get((term.node, term.boot), ()):
                if event["epoch"] == term.epoch and event["mono_ns"] <= self._last_ns:
                    chosen[_key(event)] = event
        rows: list[tuple[int, int, list[Entry]]] = [
            (e["mono_ns"], e["seq"], self._entries(e, started.get(key)))
            for key, e in chosen.items()
        ]
        rows += self._lost_attempts()
        rows += self._restarts()
        for life in {(term.node, term.boot) for term in self._terms} - self._run.stopped:
            rows += self._lost_with(*life)
        rows.sort(key=lambda row: row[:2])
        return [entry for _, _, entries in rows for entry in entries]

    def _restarts(self) -> list[tuple[int, int, list[Entry]]]:
        begin = min((t.claimed_ns for t in self._terms), default=self._first_ns)
        rows = []
        for node, number in self._nodes.items():
            for (_, boot), (next_ns, _) in zip(
                self._run.boots[node], self._run.boots[node][1:], strict=False
            ):
                ended_ns = self._run.ends.get((node, boot), next_ns)
                if begin <= ended_ns <= self._last_ns:
                    is_former = number == 1 and boot != self._identity[1]
                    kind = "former_ended" if is_former else "restarted"
                    entry = {"kind": kind, "node": number}
                    rows.append((ended_ns, 0, [(entry, f"node {node} ended")]))
        return rows

    def _lost_attempts(self) -> list[tuple[int, int, list[Entry]]]:
        """Return the attempts that a killed broker had not written yet, but that arrived.

        A process writes its events in order, so such an attempt arrived after all that are written.
        """
        broker_id, boot, _ = self._identity
        if (str(broker_id), boot) in self._run.stopped:
            return []
        sent = {e["attempt"] for e in self._own if e["kind"] == SENT}
        written_ns = max((e["mono_ns"] for e in self._run.of_boot[str(broker_id), boot]), default=0)
        arrived = [
            event
            for event in self._own
            if event["kind"] == RECEIVED and event["attempt"] not in sent
            if event["mono_ns"] > written_ns
        ]
        return [
            (
                event["mono_ns"] - 1,
                0,
                [
                    (
                        {"kind": SENT, "node": 1, "req": 1, "attempt": event["attempt"]},
                        f"lost with node {broker_id}: {SENT}, {self._id}",
                    )
                ],
            )
            for event in arrived[:1]
        ]

    def _lost_with(self, node: str, boot: str) -> list[tuple[int, int, list[Entry]]]:
        """Return the entries of executions that a killed process had not written yet.

        ZooKeeper's log shows that the process committed elements of the request.
        """
        logged = self._run.of_boot[node, boot]
        numbers = {e["number"] for e in logged if e["kind"] == COMMIT_SENT}
        lost = [
            (commit, term)
            for commit in self._commits
            for term in self._terms
            if term.session == commit.session
            and (term.node, term.boot) == (node, boot)
            and commit.number not in numbers
        ]
        if not lost:
            return []
        last_ns = logged[-1]["mono_ns"] if logged else 0
        entries: list[Entry] = []
        commit, term = lost[0]
        entry = {"node": self._nodes[node], "req": 1, "epoch": term.epoch - self._base}
        text = f"lost with node {node}: "
        if not any(e["kind"] == STARTED and e["request_id"] == self._id for e in logged):
            received = {
                e["attempt"] for e in self._own if e["kind"] == RECEIVED and e["boot"] == boot
            }
            sent = [e for e in self._own if e["kind"] == SENT and str(e["controller_id"]) == node]
            ended_ns = self._run.ends.get((node, boot))
            # A broker may send the next attempt before it notices that the process has ended.
            alive = [e for e in sent if ended_ns is None or e["mono_ns"] < ended_ns]
            arrived = next((e for e in alive if e["attempt"] not in received), None)
            if arrived is not None:
                last_ns = max(last_ns, arrived["mono_ns"])
                arrival = entry | {"kind": RECEIVED, "attempt": arrived["attempt"]}
                entries.append((arrival, f"{text}{RECEIVED}"))
            states = {topic: {False, True} for topic in self._representative}
            informed = entry | {"kind": "informed", "num": commit.number - 1, "may": states}
            entries.append((informed, f"{text}the image of {STARTED}"))
            errors = dict.fromkeys(self._representative, _FREE)
            entries.append((entry | {"kind": STARTED, "errors": errors}, f"{text}{STARTED}"))
        for commit, _ in lost:
            multi = {"num": commit.number, **contents(self._writes(commit))}
            entries.append(
                (entry | multi | {"kind": COMMIT_SENT}, f"{text}{COMMIT_SENT} {commit.number}")
            )
        return [(last_ns, 1 << 62, entries)]

    def _entries(
        self, event: Event, execution: tuple[list[Event], Event | None] | None
    ) -> list[Entry]:
        kind = event["kind"]
        entry: dict[str, Any] = {"node": self._nodes[event["node"]], "kind": kind, "req": 1}
        text = f"{kind} of node {event['node']}, seq {event['seq']}"
        if "epoch" in event:
            entry["epoch"] = event["epoch"] - self._base
        if kind in (COMMIT_SENT, COMMIT_UNKNOWN, COMMIT_DONE):
            text += f", commit {event['number']}"
            return [(entry | self._commit_entry(event), text)]
        if kind in (ACTIVE, RESIGNED):
            return [(entry, f"{text}, epoch {event['epoch']}")]
        text += f", {self._id}"
        if kind == STARTED and execution is not None:
            entries = self._execution(event, entry, text, *execution)
            is_again = self._decides_again(event)
            return [(entry | {"kind": "conflicted"}, text)] * is_again + entries
        if kind == DECIDED:
            entry["errors"] = self._errors(event)
            entry["digest"] = digest(event)
            if event["error"]:
                entry["epoch"] = -1
        if kind == RESPONDED and event["route"] != "FORWARD":
            return []
        return [(entry | broker_entry(event), text)]

    def _decides_again(self, event: Event) -> bool:
        """True if the same term has started the execution before, and not decided since."""
        before = [
            e
            for e in self._own
            if e["kind"] in (STARTED, DECIDED)
            and (e["node"], e["boot"]) == (event["node"], event["boot"])
            and e["seq"] < event["seq"]
        ]
        return (
            bool(before)
            and before[-1]["kind"] == STARTED
            and (before[-1]["epoch"] == event["epoch"])
        )

    def _commit_entry(self, event: Event) -> dict[str, Any]:
        number = event["number"]
        term = self._term_of(event)
        commit = self._run.by_number.get((term.session if term else "", number))
        entry: dict[str, Any] = {"num": number}
        if event["kind"] == COMMIT_DONE:
            entry |= {"zxid": low(event["zxid"]), "logged": low(commit.zxid) if commit else -1}
        if event["kind"] == COMMIT_SENT:
            entry |= contents(self._writes(commit) if commit else None)
        return entry

    def _writes(self, commit: Commit) -> set[tuple[int, str]]:
        return {(1, self._class_of[e]) for e in commit.elements.get(self._identity, ())}

    def _term_of(self, event: Event) -> Term | None:
        terms = [t for t in self._terms if (t.node, t.boot) == (event["node"], event["boot"])]
        return max(
            (t for t in terms if t.claimed_ns <= event["mono_ns"]),
            key=lambda t: t.epoch,
            default=None,
        )

    def _errors(self, decided: Event) -> dict[str, str]:
        codes = dict(map(tuple, decided["elements"]))
        unchanged = set(decided["unchanged"])
        errors = {}
        for topic, element in self._representative.items():
            is_unchanged = element in unchanged
            errors[topic] = error_of(codes.get(element), self._kind(), is_unchanged=is_unchanged)
        return errors or {"t0": "rejected"}

    def _execution(
        self,
        event: Event,
        entry: dict[str, Any],
        text: str,
        commits: Sequence[Event],
        decided: Event | None,
    ) -> list[Entry]:
        topics = self._representative or {"t0": ""}
        entry["errors"] = self._errors(decided) if decided else dict.fromkeys(topics, _FREE)
        last = self._run.zxids[-1]
        if decided:
            last = max(decided["zxid"], self._conflict(event, decided))
        informed = {
            "kind": "informed",
            "node": entry["node"],
            "num": commits[0]["number"] - 1 if commits else -1,
            "may": {
                topic: self._run.may_exist(element, event["image_zxid"], last)
                for topic, element in topics.items()
            },
        }
        return [(informed, f"the image of {text}"), (entry, text)]

    def _conflict(self, started: Event, decided: Event) -> int:
        """Return the zxid of a multi that conflicted with another program's write; 0: none.

        The controller then rejects the element, and does not record a second execution.
        """
        term = self._term(started["epoch"])
        between = [
            e
            for e in self._run.of_boot[started["node"], started["boot"]]
            if started["seq"] < e["seq"] < decided["seq"]
        ]
        sent, done = (
            {e["number"] for e in between if e["kind"] == kind}
            for kind in (COMMIT_SENT, COMMIT_DONE)
        )
        if term is None or sent <= done:
            return 0
        rejected = self._run.rejected[term.session]
        return next((zxid for zxid in rejected if zxid > decided["zxid"]), 0)

    # --- ZooKeeper's transactions --------------------------------------------------------------

    def _transactions(
        self, windows: Sequence[tuple[Event, list[Event], Event | None]]
    ) -> list[Entry]:
        rows: list[tuple[int, int, Entry]] = []
        for term in self._terms:
            begin, *end = term_rows(term, self._nodes[term.node], self._base)
            rows += [begin, *(end if term is not self._terms[-1] else ())]
        for commit in self._relevant(windows):
            rows += self._commit_rows(commit)
        rows += self._changes(rows)
        return [entry for _, _, entry in sorted(rows, key=lambda row: row[:2])]

    def _relevant(self, windows: Sequence[tuple[Event, list[Event], Event | None]]) -> list[Commit]:
        relevant = {c.zxid: c for c in self._commits}
        for _, events, _ in windows:
            for event in events:
                term = self._term_of(event)
                commit = self._run.by_number.get((term.session if term else "", event["number"]))
                if commit is not None:
                    relevant[commit.zxid] = commit
        return [relevant[zxid] for zxid in sorted(relevant)]

    def _commit_rows(self, commit: Commit) -> list[tuple[int, int, Entry]]:
        term = next((t for t in self._terms if t.session == commit.session), None)
        entry = committed_entry(commit, term, self._base) | {"writes": self._writes(commit)}
        skipped = {"kind": "skipped", "num": commit.number - 1}
        text = f"commit {commit.number}, zxid {commit.zxid}"
        return [
            (commit.zxid, -1, (skipped, f"commits before {text}")),
            (commit.zxid, 1, (entry, text)),
        ]

    def _changes(self, rows: Sequence[tuple[int, int, Entry]]) -> list[tuple[int, int, Entry]]:
        """Return the states of the topics before each of the request's own creations."""
        if self._kind() != "create":
            return []
        changes = []
        for zxid, order, (entry, _) in rows:
            if order == 1 and entry["writes"]:
                states = {
                    topic: self._run.exists(self._representative[topic], zxid - 1)
                    for _, topic in entry["writes"]
                }
                for exists in (False, True):
                    topics = {topic for topic, state in states.items() if state is exists}
                    change = {"kind": "changed", "topics": topics, "exists": exists}
                    text = f"other writes before zxid {zxid}"
                    changes.append((zxid, 0, (change, text)))
        return changes


Entry = tuple[dict[str, Any], str]


def request_record(
    node: int, seq: int, kind: str, topics: Sequence[str], after: int = 0
) -> dict[str, Any]:
    """Return a request as Request in spec/Forwarding.tla has it."""
    return {
        "node": node,
        "life": 1,
        "seq": seq,
        "after": after,
        "kind": kind,
        "topics": list(topics),
    }


def error_of(code: int | None, kind: str, *, is_unchanged: bool) -> str:
    """Return the specification's result of an element with this error code."""
    if code in (_NONE, _TIMED_OUT):
        return "same" if is_unchanged else "ok"
    return "exists" if code == _EXISTS and kind == "create" else "rejected"


def term_rows(term: Term, node: int, base: int) -> list[tuple[int, int, Entry]]:
    """Return the beginning of a term in ZooKeeper's log, and its end if it has one."""
    epoch = term.epoch - base
    entry = {"kind": "elected", "node": node, "epoch": epoch}
    text = f"election of epoch {term.epoch}, zxid {term.zxid}"
    if term.session == "no election":
        entry["kind"], text = "epoch_set", f"{text}: /controller was not created"
    rows: list[tuple[int, int, Entry]] = [(term.zxid, 0, (entry, text))]
    if term.ended is not None:
        zxid, kind = term.ended
        entry = {"kind": kind, "epoch": epoch}
        rows.append((zxid, 0, (entry, f"end of epoch {term.epoch}, zxid {zxid}")))
    return rows


def broker_entry(event: Event) -> dict[str, Any]:
    """Return what an entry needs of an event of a request, except of executions."""
    kind = event["kind"]
    entry: dict[str, Any] = {}
    if kind in (SENT, RECEIVED, REPLIED):
        entry["attempt"] = event["attempt"]
    if kind == REJECTED:
        entry["isFinal"] = event["error"] != _NOT_CONTROLLER
    if kind == REPLIED:
        error = event["error"]
        if error is None or error == _NOT_CONTROLLER:
            entry["kind"] = "forward_lost"
        entry["isFinal"] = error not in (_NONE, None)
        entry["timedOut"] = error == _TIMED_OUT
        entry["digest"] = digest(event)
    if kind == RESPONDED:
        entry["timedOut"] = event["error"] == _TIMED_OUT
        if event["error"] == _NOT_CONTROLLER:
            entry["kind"] = "not_controller_relayed"
    return entry


def committed_entry(commit: Commit, term: Term | None, base: int) -> dict[str, Any]:
    """Return the entry of a commit, without its contents; no step has the other two kinds."""
    kind = "committed"
    if term is None:
        kind = "foreign"
    elif commit.fence != term.version:
        kind = "not_fenced"
    return {"kind": kind, "epoch": term.epoch - base if term else 0, "num": commit.number}


def contents(writes: set[tuple[int, str]] | None, pruned: Iterable[int] = ()) -> dict[str, Any]:
    """Return what ZooKeeper's log says about a multi. None: nothing."""
    return {"isApplied": writes is not None, "writes": writes or set(), "pruned": set(pruned)}


def _key(event: Event) -> tuple[str, str, int]:
    return event["node"], event["boot"], event["seq"]


def low(zxid: int) -> int:
    """Return a zxid as an integer that TLC can hold: it has 32 bits."""
    return (zxid >> 32) % 1000 * 1_000_000 + (zxid & 0xFFFFFFFF) % 1_000_000


def digest(event: Event) -> str:
    """Return a text that is the same only for the same response."""
    return f"{event['zxid']} {event[DIGEST]}"


def slices_of(evidence: Evidence) -> tuple[list[Slice], list[str]]:
    """Return the slices of a run, and the requests that are too large for one."""
    run = Run(evidence)
    slices, too_large = [], []
    for request_id, identity in run.identities():
        slice_ = Projection(run, request_id, identity).build()
        if slice_ is None:
            too_large.append(request_id)
        else:
            slices.append(slice_)
    return slices, too_large
