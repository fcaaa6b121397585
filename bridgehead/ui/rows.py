"""Turns lines of evidence into rows of fixed width, and puts the rows in order. No I/O.

A row has what the page needs to draw an event: 41 bytes instead of about 400. The line itself stays
in its file; a row has its place.
"""

from __future__ import annotations

import json
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from bridgehead.cluster.event_lines import host_boot_id
from bridgehead.ui.ordering import causal_order
from bridgehead.ui.vocabulary import BROKER, CONTROLLER, KINDS, NUMBERS, NUMBERS_BY_NAME

# Columns that the page gets, with the type codes of `array`, which JavaScript's typed arrays share.
COLUMNS: Final = {
    "t": "d",  # milliseconds since the run began; never decreases
    "zxid": "d",
    "request": "I",  # number of the request, counted from 1; 0: none
    "epoch": "I",
    "number": "I",  # of the commit
    "text": "I",  # index in `texts`
    "node": "H",  # index in `nodes`; 0: none
    "peer": "H",  # index in `nodes`; 0: none
    "attempt": "H",
    "error": "h",  # Kafka's code; NO_ERROR: the event has none
    "kind": "B",
    "lane": "B",
    "flags": "B",
}
# The place of the line, and the request's previous row plus one. They stay in the server.
_PLACES: Final = {"file": "H", "offset": "Q", "length": "I", "previous": "I"}
NO_ERROR: Final = -32768
LOCAL, CLOSED, FAILED, CONTROLLER_CREATED, CONTROLLER_DELETED, WRITES = 1, 2, 4, 8, 16, 32
REPEATED: Final = 64  # a resend to a broker that gave no reply, or that it gave none again
TEXTS_MAX: Final = 100_000
CLIENTS_MAX: Final = 2_000
ELEMENTS_SHOWN_MAX: Final = 5

_OTHER, _TRANSACTION = NUMBERS["other"], NUMBERS["transaction"]
_WITH_SIDE: Final = frozenset(NUMBERS[key] for key in ("image", "session_opened", "session_lost"))
_TEXT_FIELDS: Final = {
    NUMBERS[key]: name
    for key, name in (
        *(("fault", "action"), ("healed", "action"), ("resigned", "reason")),
        *(("envelope_rejected", "reason"), ("stopped", "reason"), ("completed", "outcome")),
        *(("session_opened", "session"), ("session_lost", "session"), ("rule_acted", "rule")),
        *(("level", "level"), ("channel_rejected", "reason"), ("not_authenticated", "reason")),
    )
}
_RECEIVED, _DECIDED, _METRICS = NUMBERS["received"], NUMBERS["decided"], NUMBERS["metrics"]
_RESPONDED: Final = NUMBERS["responded"]
_SENT, _REPLIED = NUMBERS["forward_sent"], NUMBERS["forward_replied"]
_FAULTS: Final = frozenset((NUMBERS["fault"], NUMBERS["healed"]))
_LIVES: Final = frozenset(NUMBERS[key] for key in ("started", "stopped", "ended", "fault"))
_KILL: Final = "kill"  # the fault
_QUEUES: Final = (
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_controllereventmanager_eventqueuesize",
    "kafka_server_forwardingmanager_queuelength",
    "kafka_server_socket_server_connection_count",
)
# An event of a kind on the left causes the events on the right with the same values of two fields.
_ATTEMPT, _COMMIT, _DECISION, _ZXID, _CLAIM = range(5)
_GIVES: Final = {
    NUMBERS["forward_sent"]: ((_ATTEMPT, "request_id", "attempt"),),
    NUMBERS["commit_sent"]: ((_COMMIT, "number", ""),),
    NUMBERS["claimed"]: ((_CLAIM, "node", "epoch"),),
    NUMBERS["decided"]: ((_DECISION, "request_id", "zxid"),),
    _TRANSACTION: ((_ZXID, "zxid", ""),),
}
_NEEDS: Final = {
    NUMBERS["envelope_received"]: (_ATTEMPT, "request_id", "attempt"),
    _TRANSACTION: (_COMMIT, "number", ""),
    NUMBERS["forward_replied"]: (_DECISION, "request_id", "zxid"),
    NUMBERS["committed"]: (_ZXID, "zxid", ""),
    NUMBERS["active"]: (_ZXID, "zxid", ""),
    NUMBERS["image"]: (_ZXID, "zxid", ""),
}


def _columns_of(rows: Sequence[tuple[Any, ...]]) -> list[array[Any]]:
    """Return rows as columns.

    Raises:
        OverflowError: a number is too large for its column.
        TypeError: a value is no number.
    """
    codes = [code for name, code in (COLUMNS | _PLACES).items() if name != "previous"]
    return [
        array(code, values) for code, values in zip(codes, zip(*rows, strict=True), strict=True)
    ]


class Interner:
    """Gives each value a number, in the order of their first use; at most `limit` values."""

    def __init__(self, first: Any, limit: int) -> None:
        self.values: list[Any] = [first]
        self.rejected = 0
        self._numbers: dict[Any, int] = {first: 0}
        self._limit = limit

    def number(self, value: Any) -> int:
        """Return the value's number; 0 if there are too many values."""
        number = self._numbers.get(value)
        if number is None:
            if len(self.values) >= self._limit:
                self.rejected += 1
                return 0
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number


@dataclass(slots=True)
class Request:
    """What the page knows of one request. `elements` are the first names of `element_count`."""

    request_id: str
    handle: int  # of the request in rows that are not released yet
    number: int = 0  # counted from 1 in the order of the first rows; 0: none of them is released
    api_key: int = -1
    api_version: int = -1
    client: int = 0
    broker: int = 0
    elements: tuple[str, ...] = ()
    element_count: int = 0
    error: int = NO_ERROR  # the first code that is not 0, of the request or of an element
    asked: int = 0  # the broker that got the last Envelope

    def described(self) -> list[Any]:
        """Return the request for the page's scripts."""
        return [
            *(self.request_id, self.api_key, self.api_version, self.client, self.broker),
            *(self.elements, self.element_count, self.error),
        ]


@dataclass(slots=True)
class Rows:
    """The rows of a run in their order, and what they refer to.

    `base` is the number of rows that were dropped at the beginning, so the position of a row, which
    never changes, is `base` plus its index in the columns.
    """

    columns: dict[str, array[Any]] = field(
        default_factory=lambda: {name: array(code) for name, code in (COLUMNS | _PLACES).items()}
    )
    base: int = 0
    nodes: Interner = field(default_factory=lambda: Interner("", 60_000))
    clients: Interner = field(default_factory=lambda: Interner(("", "", "", ""), CLIENTS_MAX))
    texts: Interner = field(default_factory=lambda: Interner("", TEXTS_MAX))
    requests: dict[int, Request] = field(default_factory=dict)  # by number
    links: list[tuple[int, int]] = field(default_factory=list)  # transaction's row, request
    samples: list[tuple[float, int, list[float]]] = field(default_factory=list)
    skipped: int = 0  # lines that are no events
    late: int = 0  # rows that came after later rows had been shown
    # Node -> positions at which it started (True) or ended (False).
    lives: dict[int, list[tuple[int, bool]]] = field(default_factory=dict)
    # Positions of the transactions that made a node the controller, or (0) removed it.
    terms: list[tuple[int, int]] = field(default_factory=list)
    _last: dict[int, int] = field(default_factory=dict)  # request -> its last position
    _links_of: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    _by_id: dict[str, Request] = field(default_factory=dict)
    _by_handle: dict[int, Request] = field(default_factory=dict)
    _handle_count: int = 0
    _request_count: int = 0

    def __len__(self) -> int:
        """The number of rows, including those that were dropped."""
        return self.base + len(self.columns["t"])

    def request_of(self, request_id: str) -> Request:
        """Return a request; a new one if it is not known."""
        request = self._by_id.get(request_id)
        if request is None:
            self._handle_count += 1
            request = self._by_id[request_id] = Request(request_id, self._handle_count)
            self._by_handle[request.handle] = request
        return request

    def number_of(self, request_id: str) -> int | None:
        """Return the number of a request that has rows; None: there is no such request."""
        request = self._by_id.get(request_id)
        return request.number or None if request is not None else None

    def _numbered(self, handle: int) -> int:
        request = self._by_handle.get(handle)
        if request is None:  # it was dropped
            return 0
        if not request.number:
            self._request_count += 1
            request.number = self._request_count
            self.requests[request.number] = request
        return request.number

    def extend(self, rows: Mapping[str, array[Any]], order: Sequence[int], t: list[float]) -> None:
        """Append rows in an order, with their times."""
        if self.columns["t"] and t and t[0] < self.columns["t"][-1]:
            last = self.columns["t"][-1]
            self.late += sum(1 for time_ms in t if time_ms < last)
            t = [max(time_ms, last) for time_ms in t]
        start = len(self)
        for name, column in self.columns.items():
            if name == "t":
                column.extend(t)
            elif name not in ("previous", "request"):
                column.extend(map(rows[name].__getitem__, order))
        numbers, previous = self.columns["request"], self.columns["previous"]
        last_rows, handles = self._last, rows["request"]
        for position, row in enumerate(order, start):
            handle = handles[row]
            number = self._numbered(handle) if handle else 0
            numbers.append(number)
            if number:
                previous.append(last_rows.get(number, -1) + 1)
                last_rows[number] = position
            else:
                previous.append(0)

    def drop(self, count: int) -> None:
        """Drop the first rows, and the requests that only they belong to."""
        for column in self.columns.values():
            del column[:count]
        self.base += count
        self._last = {number: last for number, last in self._last.items() if last >= self.base}
        self.links = [link for link in self.links if link[0] >= self.base]
        self._links_of = {}
        for position, number in self.links:
            self._links_of.setdefault(number, []).append((position, number))
        for number in self.requests.keys() - self._last.keys() - self._links_of.keys():
            request = self.requests.pop(number)
            del self._by_id[request.request_id], self._by_handle[request.handle]
        for lives in self.lives.values():
            del lives[: max(bisect_left(lives, (self.base, False)) - 1, 0)]
        del self.terms[: max(bisect_left(self.terms, (self.base, 0)) - 1, 0)]
        first = self.columns["t"][0] if self.columns["t"] else 0.0
        self.samples = [sample for sample in self.samples if sample[0] >= first]

    def links_of(self, number: int) -> list[tuple[int, int]]:
        """Return the transactions that record outcomes of a request, in their order."""
        return self._links_of.get(number, [])

    def link(self, position: int, handle: int) -> None:
        """Note that the transaction at a position records an outcome of a request."""
        number = self._numbered(handle)
        if not number:
            return
        self.links.append((position, number))
        self._links_of.setdefault(number, []).append((position, number))

    def is_running(self, node: int, position: int) -> bool:
        """Return whether a process runs; a process of which nothing is known does."""
        lives = self.lives.get(node, [])
        before = bisect_right(lives, (position, True)) - 1
        return before < 0 or lives[before][1]

    def controller(self, position: int) -> int:
        """Return the node that is the controller before a position; 0: none, or it is not known."""
        before = bisect_left(self.terms, (position, 0)) - 1
        return self.terms[before][1] if before >= 0 else 0

    def links_since(self, position: int) -> list[tuple[int, int]]:
        """Return the links of transactions from a position on."""
        return self.links[bisect_left(self.links, (position, 0)) :]

    def samples_since(self, t: float) -> list[tuple[float, int, list[float]]]:
        """Return the samples of the queues from a time on."""
        return [sample for sample in self.samples if sample[0] >= t]

    def value(self, name: str, position: int) -> Any:
        """Return a value of the row at a position."""
        return self.columns[name][position - self.base]

    def of_request(self, number: int, until: int) -> list[int]:
        """Return the positions of a request's rows up to `until`, which is one of them."""
        positions = []
        position = until
        while position >= self.base:
            positions.append(position)
            position = self.value("previous", position) - 1
        return positions[::-1]


class Collector:
    """Reads lines in the order of each process, and releases rows in the order of their causes."""

    def __init__(self, started_ms: float) -> None:
        """`started_ms`: the wall-clock time at which the run began."""
        self.rows = Rows()
        self._started_ms = started_ms
        self._offsets: dict[str, float] = {}  # host -> wall clock minus monotonic clock
        self._streams: dict[str, list[int]] = {}
        self._last_ms: dict[str, float] = {}
        self._given: dict[tuple[Any, ...], int] = {}
        self._needed: list[tuple[int, tuple[Any, ...]]] = []
        self._links: dict[int, list[int]] = {}
        self._lives: dict[int, tuple[int, bool]] = {}
        self._terms: dict[int, int] = {}
        self._waiting = self._no_rows()
        self._chunk: list[tuple[Any, ...]] = []
        self._count = 0

    def now_ms(self) -> float:
        """Return the time of an event that a process of this host would write now."""
        shift = self._offsets.get(host_boot_id())
        if shift is None:
            return time.time_ns() / 1e6 - self._started_ms
        return time.monotonic_ns() / 1e6 + shift

    @property
    def has_one_clock(self) -> bool:
        """Whether one host wrote all events so far."""
        return len(self._offsets) <= 1

    def add_stream(self, stream: str) -> None:
        """Note a process. The order of the calls decides between events of equal times."""
        self._streams.setdefault(stream, [])

    def last_ms(self, stream: str) -> float:
        """Return the time of a stream's last line that was added; before the first, -infinity."""
        return self._last_ms.get(stream, float("-inf"))

    @staticmethod
    def _no_rows() -> dict[str, array[Any]]:
        codes = COLUMNS | _PLACES
        return {name: array(code) for name, code in codes.items() if name != "previous"}

    def add_lines(self, data: bytes, file: int, offset: int, stream: str) -> None:
        """Add complete lines of a file that begin at `offset`.

        `stream` is the process that wrote them, in this order.
        """
        self.add_stream(stream)
        handles = self._streams[stream]
        chunk, loads = self._chunk, orjson.loads
        row: tuple[Any, ...] = ()
        for line in data.split(b"\n"):
            length = len(line)
            if length:
                try:
                    event = loads(line)
                    row = self._row(event)
                except (ValueError, TypeError, KeyError, OverflowError, AttributeError):
                    self.rows.skipped += 1
                else:
                    handles.append(self._count)
                    chunk.append((*row, file, offset, length))
                    self._count += 1
                    if len(chunk) >= 4096:
                        self._store()
            offset += length + 1
        if row:
            self._last_ms[stream] = row[0]

    def _store(self) -> None:
        if not self._chunk:
            return
        try:
            added = _columns_of(self._chunk)
        except (OverflowError, TypeError):
            added = _columns_of([self._fitting(row) for row in self._chunk])
        for column, values in zip(self._waiting.values(), added, strict=True):
            column.extend(values)
        self._chunk.clear()

    def _fitting(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the row, or a row without values if one of them has no place in its column."""
        try:
            _columns_of([row])
        except (OverflowError, TypeError):
            self.rows.skipped += 1
            return (row[0], 0, 0, 0, 0, 0, row[6], 0, 0, NO_ERROR, _OTHER, BROKER, 0, *row[-3:])
        return row

    def release(self, until_ms: float = float("inf")) -> int:
        """Move the rows up to a time into `rows`, in order; return how many."""
        self._store()
        causes_by_key = self._given
        causes = {row: causes_by_key[key] for row, key in self._needed if key in causes_by_key}
        order, times = causal_order(list(self._streams.values()), self._waiting["t"], causes)
        count = len(order)
        while count and times[count - 1] > until_ms:
            count -= 1
        start = len(self.rows)
        released = order[:count]
        self.rows.extend(self._waiting, released, times[:count])
        for place, row in enumerate(released):
            for number in self._links.get(row, ()):
                self.rows.link(start + place, number)
            if row in self._lives:
                node, runs = self._lives[row]
                self.rows.lives.setdefault(node, []).append((start + place, runs))
            if row in self._terms:
                self.rows.terms.append((start + place, self._terms[row]))
        self._keep(order[count:])
        return count

    def _keep(self, order: list[int]) -> None:
        """Keep the rows that are not released yet, under new handles."""
        handles = {old: new for new, old in enumerate(order)}
        old_rows, self._waiting = self._waiting, self._no_rows()
        for name, column in self._waiting.items():
            column.extend(map(old_rows[name].__getitem__, order))
        kept = {
            stream: [handles[row] for row in rows if row in handles]
            for stream, rows in self._streams.items()
        }
        self._streams = kept  # in their order also without rows: it decides between equal times
        self._given = {key: handles[row] for key, row in self._given.items() if row in handles}
        self._needed = [(handles[row], key) for row, key in self._needed if row in handles]
        self._links = {
            handles[row]: numbers for row, numbers in self._links.items() if row in handles
        }
        self._lives = {handles[row]: life for row, life in self._lives.items() if row in handles}
        self._terms = {handles[row]: node for row, node in self._terms.items() if row in handles}
        self._count = len(order)

    def _row(self, event: Mapping[str, Any]) -> tuple[Any, ...]:
        name = event.get("kind")
        if "operations" in event and "session" in event:
            return self._transaction(event)
        kind = NUMBERS_BY_NAME.get(name, _OTHER)  # type: ignore[arg-type]
        get = event.get
        rows = self.rows
        host = event["host_boot_id"]
        mono_ms = event["mono_ns"] / 1e6
        if not self._started_ms:
            self._started_ms = event["wall_ms"]
        shift = self._offsets.get(host)
        if shift is None:
            shift = self._offsets[host] = event["wall_ms"] - mono_ms - self._started_ms
        t = mono_ms + shift
        node = rows.nodes.number(str(event["node"]))
        request_id = get("request_id")
        # Without the request that its kind needs, a line is no event.
        request: Any = rows.request_of(str(request_id)) if request_id is not None else None
        lane = KINDS[kind].lane
        if kind in _WITH_SIDE:
            side = get("side") or get("role")
            lane = CONTROLLER if side == "controller" else BROKER
        field_name = _TEXT_FIELDS.get(kind)
        text = rows.texts.number(str(get(field_name))) if field_name is not None else 0
        error = get("error")
        flags = (LOCAL if get("local") else 0) | (CLOSED if get("closed") else 0)
        if kind == _RECEIVED:
            self._received(request, event, node)
        elif kind == _DECIDED:
            error = self._decided(request, event)
        elif kind == _METRICS:
            values = event["values"]
            rows.samples.append((t, node, [float(values.get(queue, 0)) for queue in _QUEUES]))
        elif kind == _RESPONDED and error and request:
            request.error = error
        self._note_causes(kind, event)
        peer = self._peer(kind, get)
        if kind in (_SENT, _REPLIED):
            flags |= self._repeated(kind, request, event, peer)
        if kind in _LIVES and (kind != NUMBERS["fault"] or event["action"] == _KILL):
            self._lives[self._count] = peer or node, kind == NUMBERS["started"]
        return (
            *(t, get("zxid") or 0, request.handle if request else 0, get("epoch") or 0),
            *(get("number") or 0, text, node),
            *(peer, min(get("attempt") or 0, 0xFFFF)),
            *(NO_ERROR if error is None else error, kind, lane, flags),
        )

    @staticmethod
    def _repeated(kind: int, request: Request, event: Mapping[str, Any], peer: int) -> int:
        """Return REPEATED if the row says what rows of earlier attempts have said."""
        if kind == _REPLIED:
            return REPEATED if event["error"] is None and event["attempt"] > 1 else 0
        asked, request.asked = request.asked, peer
        return REPEATED if asked == peer and event["attempt"] > 2 else 0

    def _note_causes(self, kind: int, event: Mapping[str, Any]) -> None:
        get = event.get
        for cause, one, other in _GIVES.get(kind, ()):
            self._given.setdefault((cause, get(one), get(other)), self._count)
        need = _NEEDS.get(kind)
        if need is not None:
            self._needed.append((self._count, (need[0], get(need[1]), get(need[2]))))

    def _peer(self, kind: int, get: Any) -> int:
        peer = get("controller_id")
        if peer is None and kind in _FAULTS:
            peer = get("target")
        if peer is None:
            peer = get("ended_node")
        return self.rows.nodes.number(str(peer)) if peer is not None else 0

    def _received(self, request: Request, event: Mapping[str, Any], node: int) -> None:
        request.api_key, request.api_version = event["api_key"], event["api_version"]
        request.broker = node
        software = event.get("client_software_name") or ""
        version = event.get("client_software_version") or ""
        client = (software, version, event["principal"], event.get("client_id") or "")
        request.client = self.rows.clients.number(tuple(str(text) for text in client))

    def _decided(self, request: Request, event: Mapping[str, Any]) -> int:
        """Note the elements; return the error of the request or of its first failed element."""
        elements = event["elements"]
        request.elements = tuple(str(name) for name, _ in elements[:ELEMENTS_SHOWN_MAX])
        request.element_count = len(elements)
        failed: int = event["error"] or next((code for _, code in elements if code), 0)
        request.error = failed
        return failed

    def _transaction(self, line: Mapping[str, Any]) -> tuple[Any, ...]:
        flags, epoch, number, peer = FAILED if line["failed"] else 0, 0, 0, 0
        for operation in line["operations"] if not line["failed"] else ():
            path, kind, data = operation["path"], operation["kind"], operation.get("data")
            if path == "/controller" and kind == "create":
                flags |= CONTROLLER_CREATED
                peer = self.rows.nodes.number(str(broker_of(data)))
            elif path == "/controller" and kind == "delete":
                flags |= CONTROLLER_DELETED
            elif path == "/controller_epoch" and kind in ("create", "set"):
                epoch = number_of(data)
            elif path == "/bridgehead/commit" and kind == "set":
                number = number_of(data)
            if kind in ("create", "set", "delete") and operation.get("role") == "admin":
                flags |= WRITES
        outcomes = line["outcomes"]
        requests = {self.rows.request_of(outcome["request_id"]).handle for outcome in outcomes}
        if requests:
            self._links[self._count] = sorted(requests)
        if flags & (CONTROLLER_CREATED | CONTROLLER_DELETED):
            self._terms[self._count] = peer
        zxid = line["zxid"]
        self._note_causes(_TRANSACTION, {"zxid": zxid, "number": number or None})
        if flags & CONTROLLER_CREATED:
            self._needed.append((self._count, (_CLAIM, self.rows.nodes.values[peer], epoch)))
        return (
            *(line["time_ms"] - self._started_ms, zxid, 0, epoch, number),
            *(self.rows.texts.number(line["session"]), 0, peer, 0, NO_ERROR, _TRANSACTION),
            *(KINDS[_TRANSACTION].lane, flags),
        )


def number_of(data: str | None) -> int:
    """Return the number that is a znode's content; 0 if the content is no number."""
    return int(data) if data is not None and data.isdecimal() and len(data) < 10 else 0


def broker_of(data: str | None) -> int:
    """Return the broker id in the content of /controller; -1 if it has none."""
    try:
        return int(json.loads(data or "")["brokerid"])
    except (ValueError, TypeError, KeyError):
        return -1


def packed(rows: Rows, start: int, stop: int) -> bytes:
    """Return the columns between two positions, one after the other, padded to 8 bytes each."""
    parts = []
    for name in COLUMNS:
        data = rows.columns[name][start - rows.base : stop - rows.base].tobytes()
        parts += [data, bytes(-len(data) % 8)]
    return b"".join(parts)
