"""Turns the evidence of a small run into one slice that has all of its requests. Pure.

Here the commit counter, the topics and the floors are explained. A process is a node: a broker that
restarts is another one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from judge.evidence.reading import Event, Evidence
from judge.spec import projection as p
from judge.spec.projection import Commit, Entry, Identity, Run, Slice, Term

# Above these, TLC takes minutes: docs/specification.md has the figures.
REQUESTS_MAX: Final = 150
TOPICS_MAX: Final = 150
TERMS_MAX: Final = 8
PROCESSES_MAX: Final = 16
_LAST: Final = 1 << 62  # after all events of the same time

Process = tuple[str, str]  # node, boot
_Row = tuple[int, int, list[Entry]]  # time, order, entries


class NotWholeError(Exception):
    """The run cannot be explained as a whole. The message is one clause."""


@dataclass(slots=True)
class _Request:
    number: int
    name: str
    identity: Identity
    events: list[Event]
    commits: list[Commit]
    elements: dict[str, str] = field(default_factory=dict)  # class of each element

    @property
    def process(self) -> Process:
        return str(self.identity[0]), self.identity[1]

    @property
    def is_creation(self) -> bool:
        return any(e["kind"] == p.STARTED and e["api_key"] == p.CREATE_TOPICS for e in self.events)

    def names(self) -> list[str]:
        """Return the elements in the order of their commits."""
        names: dict[str, None] = {}
        for commit in self.commits:
            names.update(dict.fromkeys(sorted(commit.elements[self.identity])))
        for event in self.events:
            if event["kind"] == p.DECIDED:
                names.update((name, None) for name, _ in event["elements"])
        return list(names)

    def history(self, name: str) -> tuple[object, ...]:
        """Return what this request did to an element: equal histories are one element."""
        decided = [e for e in self.events if e["kind"] == p.DECIDED]
        return (
            self.number,
            tuple(c.number for c in self.commits if name in c.elements[self.identity]),
            tuple(dict(map(tuple, e["elements"])).get(name, -1) for e in decided),
            tuple(name in e["unchanged"] for e in decided),
        )


class WholeRun:
    """Builds the slice of all requests of a run."""

    def __init__(self, evidence: Evidence) -> None:
        self._run = run = Run(evidence)
        self._terms = run.terms
        self._base = run.terms[0].epoch - 1 if run.terms else 0
        self._requests = [
            _Request(number, name, identity, self._events_of(name), run.by_identity[identity])
            for number, (name, identity) in enumerate(self._identities(), 1)
        ]
        self._by_name = {request.name: request for request in self._requests}
        self._by_identity = {request.identity: request for request in self._requests}
        self._processes: dict[Process, int] = {}
        self._number_processes()
        self._initial = {
            path.removeprefix(p.TOPICS) for path in evidence.first if path.startswith(p.TOPICS)
        }
        self._topics = self._classes()
        self._check_bounds()
        if len({event["host_boot_id"] for event in evidence.events}) > 1:
            raise NotWholeError("its nodes have no common clock")

    def _identities(self) -> list[tuple[str, Identity]]:
        identities = dict(self._run.identities())
        listed = set(identities.values())
        # Requests of which a killed process had written no event.
        for line in self._run.lines:
            for outcome in line.outcomes:
                identity = outcome.broker_id, outcome.incarnation, outcome.sequence
                if identity not in listed:
                    listed.add(identity)
                    identities[outcome.request_id] = identity
        return list(identities.items())

    def _events_of(self, name: str) -> list[Event]:
        return [e for e in self._run.of_request[name] if e["kind"] in p.REQUEST_KINDS]

    def _number_processes(self) -> None:
        lives = [(node, boot) for node, boots in self._run.boots.items() for _, boot in boots]
        lives += [(term.node, term.boot) for term in self._terms]
        lives += [request.process for request in self._requests]
        lives += [(e["node"], e["boot"]) for request in self._requests for e in request.events]
        for life in lives:
            self._processes.setdefault(life, len(self._processes) + 1)

    def _classes(self) -> dict[str, list[str]]:
        """Give every element its class; return the topics of each class that has a state."""
        histories: dict[str, list[object]] = defaultdict(list)
        for request in self._requests:
            if request.is_creation:
                for name in request.names():
                    histories[name].append(request.history(name))
        classes: dict[tuple[object, ...], str] = {}
        topics: dict[str, list[str]] = defaultdict(list)
        for name, history in histories.items():
            changes = tuple(self._run.topics.get(name, ()))
            key = (*history, changes, name in self._initial)
            topics[classes.setdefault(key, f"t{len(classes)}")].append(name)
        class_of = {name: label for label, names in topics.items() for name in names}
        for request in self._requests:
            alike: dict[object, str] = {}
            for name in request.names():
                request.elements[name] = (
                    class_of[name]
                    if request.is_creation
                    else alike.setdefault(request.history(name), f"x{len(alike)}")
                )
        return topics

    def _check_bounds(self) -> None:
        for count, limit, what in (
            (len(self._requests), REQUESTS_MAX, "requests"),
            (len(self._topics), TOPICS_MAX, "topics"),
            (len(self._terms), TERMS_MAX, "terms"),
            (len(self._processes), PROCESSES_MAX, "processes"),
        ):
            if count > limit:
                raise NotWholeError(f"the run has {count:,} {what}, the limit is {limit:,}")
        for line in self._run.lines:
            is_controllers = any(o.path == p.COUNTER for o in line.operations)
            if not is_controllers and self._changes(line.zxid):
                raise NotWholeError("another program has changed topics of the run")

    def _changes(self, zxid: int) -> dict[str, bool]:
        """Return the classes of topics that a transaction creates or deletes."""
        return {
            label: exists
            for label, names in self._topics.items()
            for at, exists in self._run.topics.get(names[0], ())
            if at == zxid
        }

    def _background(self, commit: Commit) -> dict[str, bool]:
        """Return the changes of topics in a commit that no request has asked for."""
        written = {label for _, label in self._writes(commit)}
        return {
            label: exists
            for label, exists in self._changes(commit.zxid).items()
            if not exists or label not in written
        }

    def build(self) -> Slice:
        """Return the slice."""
        rows = [row for event in self._run.events if (row := self._row(event)) is not None]
        rows += self._ends()
        rows += self._lost_commits()
        rows.sort(key=lambda row: row[:2])
        events = [entry for _, _, entries in rows for entry in entries]
        self._take(events)
        events = self._images_first(events)
        commits = self._transactions()
        labels = {label for request in self._requests for label in request.elements.values()}
        return Slice(
            name="whole run",
            requests=self._records(),
            topics=tuple(sorted(labels | {"t0"})),
            epochs=len(self._terms),
            nodes=len(self._processes),
            events=tuple(entry for entry, _ in events),
            commits=tuple(entry for entry, _ in commits),
            texts=(tuple(t for _, t in events), tuple(t for _, t in commits)),
            is_whole=True,
        )

    def _records(self) -> tuple[Mapping[str, Any], ...]:
        before: dict[str, int] = {}
        records = []
        for request in self._requests:
            connection = _connection_of(request.name)
            labels = list(dict.fromkeys(request.elements.values())) or ["t0"]
            kind = "create" if request.is_creation else "alter"
            records.append(
                p.request_record(
                    self._processes[request.process],
                    request.identity[2],
                    kind,
                    labels,
                    after=before.get(connection, 0),
                )
            )
            if connection:
                before[connection] = request.number
        return tuple(records)

    # --- The nodes' events ---------------------------------------------------------------------

    def _row(self, event: Event) -> _Row | None:
        kind, process = event["kind"], (event["node"], event["boot"])
        entry: dict[str, Any] = {"kind": kind, "node": self._processes.get(process, 0)}
        text = f"{kind} of node {event['node']}, seq {event['seq']}"
        if kind in p.REQUEST_KINDS:
            request = self._by_name.get(event["request_id"])
            if request is None or (kind == p.RESPONDED and event["route"] != "FORWARD"):
                return None
            entry |= {"req": request.number, **p.broker_entry(event)}
            if kind == p.STARTED:
                entry |= {"epoch": event["epoch"] - self._base}
                entry["errors"] = self._errors(request, event)
            elif kind == p.DECIDED:
                entry |= {"epoch": -1 if event["error"] else event["epoch"] - self._base}
                entry |= {"errors": self._codes(request, event), "digest": p.digest(event)}
            entries: list[Entry] = [(entry, f"{text}, {request.name}")]
            if kind == p.RECEIVED:
                entries = [*self._lost_attempt(request, event), *entries]
            return event["mono_ns"], event["seq"], entries
        if kind in (p.ACTIVE, p.RESIGNED):
            entry["epoch"] = event["epoch"] - self._base
            entries = [(entry, f"{text}, epoch {event['epoch']}")]
        elif kind in (p.COMMIT_SENT, p.COMMIT_UNKNOWN, p.COMMIT_DONE):
            entries = self._of_multi(event, entry, f"{text}, commit {event['number']}")
        else:
            return None
        return event["mono_ns"], event["seq"], entries

    def _of_multi(self, event: Event, entry: dict[str, Any], text: str) -> list[Entry]:
        commit = self._commit_of(event)
        if event["kind"] == p.COMMIT_SENT:
            epoch = event["epoch"] - self._base
            return self._sent(commit, entry | {"num": event["number"], "epoch": epoch}, text)
        entry["num"] = event["number"]
        if event["kind"] == p.COMMIT_UNKNOWN:
            return [(entry, text)]
        logged = p.low(commit.zxid) if commit else -1
        entries = [(entry | {"zxid": p.low(event["zxid"]), "logged": logged}, text)]
        changes = self._background(commit) if commit else {}
        if changes:
            may = {label: {exists} for label, exists in changes.items()}
            informed = {"kind": "informed", "node": entry["node"], "num": -1, "may": may}
            entries.append((informed, f"the image after {text}"))
        return entries

    def _sent(self, commit: Commit | None, entry: dict[str, Any], text: str) -> list[Entry]:
        """Return the entries of a multi: first the floors that it stores."""
        if commit is None:
            return [(entry | p.contents(None), text)]
        floors = {
            (self._processes[process], floor)
            for process, floor in commit.floors.items()
            if process in self._processes
        }
        entries: list[Entry] = []
        if floors:
            reported = {"kind": "floors", "node": entry["node"], "floors": floors}
            entries.append((reported, f"the floors in {text}"))
        pruned = {
            self._by_identity[identity].number
            for number in commit.pruned
            for identity in self._outcomes_of(number)
            if identity in self._by_identity
        }
        entries.append((entry | p.contents(self._writes(commit), pruned), text))
        return entries

    def _outcomes_of(self, number: int) -> Iterable[Identity]:
        return next((c.elements for c in self._run.commits if c.number == number), {})

    def _writes(self, commit: Commit) -> set[tuple[int, str]]:
        return {
            (request.number, request.elements[name])
            for identity, names in commit.elements.items()
            if (request := self._by_identity.get(identity)) is not None
            for name in names
        }

    def _commit_of(self, event: Event) -> Commit | None:
        """Return the transaction of a commit event, if ZooKeeper's log has one."""
        terms = [
            term
            for term in self._terms
            if (term.node, term.boot) == (event["node"], event["boot"])
            and term.claimed_ns <= event["mono_ns"]
        ]
        session = max(terms, key=lambda term: term.epoch).session if terms else ""
        return self._run.by_number.get((session, event["number"]))

    def _codes(self, request: _Request, decided: Event) -> dict[str, str]:
        codes = dict(map(tuple, decided["elements"]))
        unchanged = set(decided["unchanged"])
        kind = "create" if request.is_creation else "alter"
        return {
            label: p.error_of(codes.get(name), kind, is_unchanged=name in unchanged)
            for name, label in request.elements.items()
        } or {"t0": "rejected"}

    def _errors(self, request: _Request, started: Event) -> dict[str, str]:
        """Return the results of an execution. Without a decision: what was committed."""
        for event in request.events:
            is_later = event["seq"] > started["seq"]
            if is_later and (event["node"], event["boot"]) == (started["node"], started["boot"]):
                if event["kind"] == p.DECIDED:
                    return self._codes(request, event)
                if event["kind"] == p.STARTED:
                    break
        return self._committed(request, started["epoch"])

    def _committed(self, request: _Request, epoch: int) -> dict[str, str]:
        sessions = {term.session for term in self._terms if term.epoch <= epoch}
        names = {
            name
            for commit in request.commits
            if commit.session in sessions
            for name in commit.elements[request.identity]
        }
        return {
            label: "ok" if name in names else "rejected" for name, label in request.elements.items()
        } or {"t0": "rejected"}

    def _ends(self) -> list[_Row]:
        rows: list[_Row] = []
        for node, boots in self._run.boots.items():
            following = [begin_ns for begin_ns, _ in boots[1:]]
            for at, (_, boot) in enumerate(boots):
                ended_ns = self._run.ends.get((node, boot))
                if ended_ns is None and at < len(following):
                    ended_ns = following[at]
                if ended_ns is not None:
                    entry = {"kind": "restarted", "node": self._processes[node, boot]}
                    rows.append((ended_ns, _LAST, [(entry, f"node {node} ended")]))
        return rows

    # --- What killed processes had not written --------------------------------------------------

    def _lost_attempt(self, request: _Request, received: Event) -> list[Entry]:
        """Return the attempt before an Envelope, if its broker was killed and did not write it."""
        attempt = received["attempt"]
        sent = {e["attempt"] for e in request.events if e["kind"] == p.SENT}
        if request.process in self._run.stopped or attempt in sent:
            return []
        return self._sent_lost(request, attempt)

    def _sent_lost(self, request: _Request, attempt: int) -> list[Entry]:
        entry = {"req": request.number, "node": self._processes[request.process]}
        text = f"lost with node {request.process[0]}: {{}}, {request.name}"
        ended = {e["attempt"] for e in request.events if e["kind"] == p.REPLIED}
        sent = entry | {"kind": p.SENT, "attempt": attempt}
        entries: list[Entry] = [(sent, text.format(p.SENT))]
        if attempt > 1 and attempt - 1 not in ended:
            lost = entry | {"kind": "forward_lost", "attempt": attempt - 1}
            entries.insert(0, (lost, text.format("the end of an attempt")))
        return entries

    def _lost_commits(self) -> list[_Row]:
        """Return the commits of killed processes whose events are not written."""
        rows: list[_Row] = []
        for term in self._terms:
            logged = self._run.of_boot[term.node, term.boot]
            numbers = {
                e["number"]
                for e in logged
                if e["kind"] == p.COMMIT_SENT and e["epoch"] == term.epoch
            }
            lost = [
                commit
                for commit in self._run.commits
                if commit.session == term.session and commit.number not in numbers
            ]
            if lost and (term.node, term.boot) not in self._run.stopped:
                rows.append(self._lost_with(term, logged, lost))
        return rows

    def _lost_with(self, term: Term, logged: Sequence[Event], lost: Sequence[Commit]) -> _Row:
        process = term.node, term.boot
        entry: dict[str, Any] = {
            "node": self._processes[process],
            "epoch": term.epoch - self._base,
        }
        text = f"lost with node {term.node}: "
        acknowledged = {e["number"] for e in logged if e["kind"] == p.COMMIT_DONE}
        in_flight = [
            c
            for e in logged
            if e["kind"] == p.COMMIT_SENT and e["number"] not in acknowledged
            if (c := self._commit_of(e)) is not None
        ]
        # A process writes its events in order, so what is lost follows all that it has written.
        written_ns = (e["mono_ns"] for e in self._run.events if (e["node"], e["boot"]) == process)
        last_ns = max(written_ns, default=term.claimed_ns)
        started = self._undecided(process, logged)
        entries: list[Entry] = []
        for commit in lost:
            new = [
                request
                for identity in commit.elements
                if (request := self._by_identity.get(identity)) and request.number not in started
            ]
            if new or not commit.elements:
                for before in in_flight:
                    zxid = p.low(before.zxid)
                    done = entry | {"kind": p.COMMIT_DONE, "num": before.number}
                    done |= {"zxid": zxid, "logged": zxid}
                    entries.append((done, f"{text}{p.COMMIT_DONE} {before.number}"))
                in_flight = []
            for request in new:
                started.add(request.number)
                last_ns = max(last_ns, self._arrive_lost(request, process, entry, entries))
                errors = self._committed(request, term.epoch)
                start = entry | {"kind": p.STARTED, "req": request.number, "errors": errors}
                entries.append((start, f"{text}{p.STARTED}, {request.name}"))
            multi = entry | {"kind": p.COMMIT_SENT, "num": commit.number}
            entries += self._sent(commit, multi, f"{text}{p.COMMIT_SENT} {commit.number}")
            in_flight.append(commit)
        return last_ns, _LAST - 1, entries

    def _undecided(self, process: Process, logged: Sequence[Event]) -> set[int]:
        started: set[int] = set()
        for event in logged:
            if event["kind"] == p.RESIGNED:
                started.clear()
            request = self._by_name.get(event.get("request_id", ""))
            if request is not None and event["kind"] == p.STARTED:
                started.add(request.number)
            elif request is not None and event["kind"] == p.DECIDED:
                started.discard(request.number)
        return started

    def _arrive_lost(
        self, request: _Request, process: Process, entry: Mapping[str, Any], entries: list[Entry]
    ) -> int:
        """Append the arrival of a request whose execution is lost; return when it was sent."""
        received = [
            e["attempt"]
            for e in request.events
            if e["kind"] == p.RECEIVED and (e["node"], e["boot"]) == process
        ]
        ended_ns = self._run.ends.get(process, _LAST)
        sent = [
            e
            for e in request.events
            if e["kind"] == p.SENT
            and str(e["controller_id"]) == process[0]
            and e["mono_ns"] < ended_ns
            and e["attempt"] not in received
        ]
        if received and not sent:
            return 0
        if not sent:
            attempt = 1 + max((e["attempt"] for e in request.events if "attempt" in e), default=0)
            entries += self._sent_lost(request, attempt)
            begin_ns = 0
        else:
            attempt, begin_ns = sent[0]["attempt"], sent[0]["mono_ns"]
        arrival = {**entry, "kind": p.RECEIVED, "req": request.number, "attempt": attempt}
        entries.append((arrival, f"lost with node {process[0]}: {p.RECEIVED}, {request.name}"))
        return begin_ns

    # --- Envelopes and images --------------------------------------------------------------------

    def _take(self, events: Sequence[Entry]) -> None:
        """Say before which entry the controller takes each Envelope.

        A copy that arrives during an execution joins it, except if it is executed later.
        """
        waiting: dict[tuple[int, int], list[int]] = defaultdict(list)  # by node and request
        following = _following(events)
        for at, (entry, _) in enumerate(events):
            kind, node = entry["kind"], entry["node"]
            place = node, entry.get("req", 0)
            if kind == p.RECEIVED:
                waiting[place].append(entry["attempt"])
            elif kind == p.REJECTED:
                entry["attempt"] = waiting[place].pop() if waiting[place] else 0
            elif kind in (p.STARTED, p.DECIDED):
                kept = []
                if kind == p.DECIDED and following.get(at) == p.STARTED:
                    kept = waiting[place][-1:]
                entry["takes"] = set(waiting[place]) - set(kept)
                waiting[place] = kept
            elif kind == p.REPLIED:
                entry["takes"] = set()
                if entry["timedOut"]:
                    for (_, req), attempts in waiting.items():
                        if req == entry["req"] and entry["attempt"] in attempts:
                            attempts.remove(entry["attempt"])
                            entry["takes"] = {entry["attempt"]}
            elif kind in (p.RESIGNED, "restarted"):
                for place in list(waiting):
                    if place[0] == node:
                        del waiting[place]

    def _images_first(self, events: Sequence[Entry]) -> list[Entry]:
        """Move each became_active before the first multi of its term: the image is read before."""
        first: dict[tuple[int, int], int] = {}
        active: dict[tuple[int, int], int] = {}
        for at, (entry, _) in enumerate(events):
            if entry["kind"] in (p.COMMIT_SENT, p.ACTIVE):
                places = first if entry["kind"] == p.COMMIT_SENT else active
                places.setdefault((entry["node"], entry["epoch"]), at)
        before: dict[int, list[Entry]] = defaultdict(list)
        moved = set()
        for term, at in first.items():
            if term not in active:
                loaded = {"kind": p.ACTIVE, "node": term[0], "epoch": term[1]}
                before[at].append((loaded, f"the image before {events[at][1]}"))
            elif active[term] > at:
                before[at].append(events[active[term]])
                moved.add(active[term])
        return [
            entry
            for at, event in enumerate(events)
            for entry in (*before[at], *([] if at in moved else [event]))
        ]

    # --- ZooKeeper's transactions --------------------------------------------------------------

    def _transactions(self) -> list[Entry]:
        rows: list[tuple[int, int, Entry]] = []
        for term in self._terms:
            rows += p.term_rows(term, self._processes[term.node, term.boot], self._base)
        for commit in self._run.commits:
            of = next((t for t in self._terms if t.session == commit.session), None)
            entry = p.committed_entry(commit, of, self._base) | {"writes": self._writes(commit)}
            rows.append((commit.zxid, 1, (entry, f"commit {commit.number}, zxid {commit.zxid}")))
            background = self._background(commit)
            for exists in (False, True):
                rows += _changed(commit.zxid, background, exists)
        first = self._run.commits[0].number - 1 if self._run.commits else 0
        before: list[Entry] = [({"kind": "skipped", "num": first}, "commits before the run")]
        initial = {
            label: True for label, names in self._topics.items() if names[0] in self._initial
        }
        before += [entry for *_, entry in _changed(0, initial, True)]
        return before + [entry for *_, entry in sorted(rows, key=lambda row: row[:2])]


def _changed(zxid: int, changes: Mapping[str, bool], exists: bool) -> list[tuple[int, int, Entry]]:
    topics = {label for label, state in changes.items() if state is exists}
    if not topics:
        return []
    entry = {"kind": "changed", "topics": topics, "exists": exists}
    return [(zxid, 2, (entry, f"other writes in zxid {zxid}"))]


def _following(events: Sequence[Entry]) -> dict[int, str]:
    """Return, for each entry of an execution, what its controller does next with the request."""
    following: dict[int, str] = {}
    last: dict[tuple[int, int], int] = {}
    for at, (entry, _) in enumerate(events):
        if entry["kind"] in (p.RECEIVED, p.STARTED, p.DECIDED):
            place = entry["node"], entry["req"]
            if place in last:
                following[last[place]] = entry["kind"]
            last[place] = at
    return following


def _connection_of(request_id: str) -> str:
    """Return the connection in the id of a client's request; "" for a broker's own request."""
    connection, *numbers = request_id.rsplit(".", 2)
    return connection if len(numbers) == 2 and all(n.isdigit() for n in numbers) else ""


def whole_run(evidence: Evidence) -> Slice:
    """Return the slice of all requests of a run. Raises NotWholeError above the bounds."""
    return WholeRun(evidence).build()
