"""One sentence for each event: what happened, and why it matters. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.ui.rows import (
    CONTROLLER_CREATED,
    CONTROLLER_DELETED,
    FAILED,
    LOCAL,
    NO_ERROR,
    Rows,
)
from bridgehead.ui.vocabulary import KINDS, NUMBERS

Event = Mapping[str, Any]
_NAMES_SHOWN_MAX: Final = 3
_TEXT_MAX: Final = 120
_REJECTIONS: Final = {  # by ZooKeeper's error code
    -101: "a znode is missing",
    -102: "its session has no right to do this",
    -103: "a version is old",
    -110: "a znode exists already",
    -111: "a znode has children",
}


def api_name(api_key: int) -> str:
    """Return the name of an API."""
    spec = API_SPECS.get(api_key)
    return spec.name if spec is not None else f"API {api_key}"


def error_name(code: int) -> str:
    """Return the name of an error code."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


class Captions:
    """Writes the captions of a run's events."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._writers: dict[int, Callable[[int, Event], str]] = {
            NUMBERS[key]: writer for key, writer in _writers(self).items()
        }

    def of(self, position: int, event: Event) -> str:
        """Return the caption of the event at a position."""
        kind = self._rows.value("kind", position)
        writer = self._writers.get(kind)
        if writer is None:
            name = event.get("kind", "an event")
            return f"{self._who(position)}: {KINDS[kind].title if kind else name}."
        try:
            return writer(position, event)
        except (KeyError, TypeError, ValueError, IndexError):  # a field is missing or mistyped
            return f"{self._who(position)}: {KINDS[kind].title}."

    def _who(self, position: int) -> str:
        return node_name(self._rows.nodes.values[self._rows.value("node", position)])

    def _flag(self, position: int, flag: int) -> bool:
        return bool(self._rows.value("flags", position) & flag)

    def _request(self, position: int) -> str:
        """Return `request 7 (CreateTopics)`."""
        number = self._rows.value("request", position)
        request = self._rows.requests.get(number)
        api = f" ({api_name(request.api_key)})" if request and request.api_key >= 0 else ""
        return f"request {number}{api}"

    def _earlier(self, position: int, *keys: str) -> list[int]:
        """Return the earlier rows of the same request that are of these kinds."""
        kinds = {NUMBERS[key] for key in keys}
        number = self._rows.value("request", position)
        return [
            row
            for row in self._rows.of_request(number, position)[:-1]
            if self._rows.value("kind", row) in kinds
        ]

    def _recorded_zxid(self, position: int) -> int:
        """Return the zxid of a transaction before this row with outcomes of its request, or 0."""
        number = self._rows.value("request", position)
        links = [row for row, request in self._rows.links_of(number) if row < position]
        return int(self._rows.value("zxid", links[-1])) if links else 0

    def received(self, position: int, event: Event) -> str:
        """A request arrived."""
        route = {
            "FORWARD": "It goes to the controller in an Envelope.",
            "LOCAL": "The broker answers it itself.",
            "DIRECT": "The broker decides it itself and writes to ZooKeeper.",
            "NOT_CONTROLLER": "The client must ask the controller.",
            "CLOSE": "The broker closes the connection.",
        }.get(event["route"], "")
        principal = shown(event["principal"])
        return f"{self._who(position)} gets {self._request(position)} from {principal}. {route}"

    def responded(self, position: int, event: Event) -> str:
        """A response left the broker."""
        who, request = self._who(position), self._request(position)
        if event["closed"]:
            return f"{who} closes the connection instead of answering {request}."
        asked = self._rows.requests.get(self._rows.value("request", position))
        code = asked.error if asked else NO_ERROR
        code = event["error"] or code
        if code and code != NO_ERROR:
            return f"{who} answers {request} with {error_name(code)}."
        sends = len(self._earlier(position, "forward_sent"))
        if sends > 1:
            return f"{who} answers {request}: the client sees one success after {sends} attempts."
        return f"{who} answers {request}."

    def forward_sent(self, position: int, event: Event) -> str:
        """An Envelope left the broker."""
        who, request = self._who(position), self._request(position)
        controller = event["controller_id"]
        verb = "resends" if event["attempt"] > 1 else "forwards"
        if not self._rows.is_running(self._rows.value("peer", position), position):
            return (
                f"{who} {verb} {request} to broker {controller}, which is down. It repeats this "
                "until a controller responds."
            )
        if event["attempt"] > 1:
            text = f"{who} resends {request} to the controller, broker {controller}"
            zxid = self._recorded_zxid(position)
            if zxid:
                return f"{text}; its outcome is recorded (zxid {zxid:#x}), so nothing runs twice."
            text += f", attempt {event['attempt']}, with the same identity as before"
            # Without any recorded outcome, ZooKeeper's log may be unknown.
            runs = ": no outcome is recorded, so it still has to run" if self._rows.links else ""
            return f"{text}{runs}."
        if self._flag(position, LOCAL):
            return f"{who} is the controller and hands {request} to itself."
        return f"{who} forwards {request} to the controller, broker {controller}, in an Envelope."

    def forward_replied(self, position: int, event: Event) -> str:
        """An attempt to forward ended."""
        who, request = self._who(position), self._request(position)
        if event["error"] is None:
            return (
                f"{who} gets no reply for {request}: it cannot know the outcome, so it will resend "
                "the request with the same identity."
            )
        if event["error"] == ErrorCode.NOT_CONTROLLER:
            return f"{who} learns that the peer no longer is the controller; {request} waits."
        if event["error"]:
            return f"{who} gets {error_name(event['error'])} for the Envelope of {request}."
        return f"{who} gets the response of {request} from the controller."

    def envelope_received(self, position: int, event: Event) -> str:
        """An Envelope reached a controller."""
        attempt = f", attempt {event['attempt']}" if event["attempt"] > 1 else ""
        return (
            f"The controller on {self._who(position).lower()} gets the Envelope of "
            f"{self._request(position)}{attempt}, sent by {shown(event['sender'])}."
        )

    def envelope_rejected(self, position: int, event: Event) -> str:
        """A check of an Envelope failed."""
        return (
            f"{self._who(position)} rejects the Envelope of {self._request(position)} with "
            f"{error_name(event['error'])}: {shown(event['reason'])}. Nothing is executed."
        )

    def executing(self, position: int, event: Event) -> str:
        """The controller begins to decide."""
        return (
            f"The controller (epoch {event['epoch']}) starts to decide {self._request(position)} "
            f"with the rights of {shown(event['principal'])}."
        )

    def decided(self, position: int, event: Event) -> str:
        """The controller decided."""
        request = self._request(position)
        if event["error"]:
            return f"The controller rejects {request} with {error_name(event['error'])}."
        elements = event["elements"]
        names = ", ".join(shown(str(name)) for name, _ in elements[:_NAMES_SHOWN_MAX])
        more = f" and {len(elements) - _NAMES_SHOWN_MAX} more" if len(elements) > 3 else ""
        failed = [code for _, code in elements if code]
        result = f"{len(elements) - len(failed)} of {len(elements)} succeed" if failed else "done"
        if failed:
            result += f", {error_name(failed[0])}"
        begun = self._earlier(position, "executing")
        recorded = self._recorded_zxid(position)
        if len(begun) > 1 and recorded:
            written = self._rows.links_of(self._rows.value("request", position))[-1][0]
            if written < begun[-1]:
                result += f"; recorded before (zxid {recorded:#x}), so nothing runs twice"
        return f"The controller decides {request}: {names}{more}: {result}."

    def commit_sent(self, position: int, event: Event) -> str:
        """A multi left the controller."""
        return (
            f"{self._who(position)} sends commit {event['number']} of epoch {event['epoch']} to "
            f"ZooKeeper: a multi, whose {event['operations']} operations apply together, and only "
            "if there is no newer controller."
        )

    def transaction(self, position: int, event: Event) -> str:
        """A transaction in ZooKeeper's log."""
        if self._flag(position, FAILED):
            return self._rejected(event)
        zxid = int(event["zxid"])
        if self._flag(position, CONTROLLER_CREATED):
            broker = self._rows.nodes.values[self._rows.value("peer", position)]
            epoch = self._rows.value("epoch", position)
            return (
                f"ZooKeeper elects broker {broker} as controller, epoch {epoch} (zxid {zxid:#x}). "
                "Writes of lower epochs now fail."
            )
        if self._flag(position, CONTROLLER_DELETED):
            why = "the session ended" if event["kind"] == "close_session" else "it was deleted"
            return f"/controller is gone: {why}. There is no controller until one is elected."
        if event["kind"] in ("create_session", "close_session"):
            verb = "opens" if event["kind"] == "create_session" else "ends"
            return f"ZooKeeper {verb} session {event['session']} (zxid {zxid:#x})."
        count = len(event["operations"])
        requests = len({outcome["request_id"] for outcome in event["outcomes"]})
        kept = "; it records the outcome of 1 request" if requests == 1 else ""
        if requests > 1:
            kept = f"; it records the outcomes of {requests} requests"
        noun = "operation" if count == 1 else "operations"
        return f"ZooKeeper applies {count} {noun} as zxid {zxid:#x}{kept}."

    def _rejected(self, event: Event) -> str:
        """Say which operation of a rejected multi failed: the others have the code 0 or -2."""
        codes = [operation["error"] for operation in event["operations"]]
        failed = next((at for at, code in enumerate(codes) if code not in (0, -2)), None)
        zxid = int(event["zxid"])
        if failed == 0 and codes[0] == -103:
            return (
                f"ZooKeeper rejects the multi (zxid {zxid:#x}): its epoch or version is old. "
                "Nothing of it is written."
            )
        code = codes[failed] if failed is not None else 0
        why = _REJECTIONS.get(code, f"code {code}")
        return f"ZooKeeper rejects a write (zxid {zxid:#x}): {why}. Nothing is written."

    def committed(self, position: int, event: Event) -> str:
        """ZooKeeper acknowledged a multi."""
        who, zxid = self._who(position), int(event["zxid"])
        return f"{who} learns that commit {event['number']} is applied (zxid {zxid:#x})."

    def commit_unknown(self, position: int, event: Event) -> str:
        """The connection broke with a multi in flight."""
        return (
            f"{self._who(position)} loses ZooKeeper with commit {event['number']} in flight: it "
            "may or may not be applied. The recorded outcomes will tell."
        )

    def image(self, position: int, event: Event) -> str:
        """A node applied newer metadata."""
        side = "The controller" if event["side"] == "controller" else "The broker"
        who, zxid = self._who(position).lower(), int(event["zxid"])
        return f"{side} on {who} now has metadata of zxid {zxid:#x}."

    def session_opened(self, position: int, event: Event) -> str:
        """A ZooKeeper session began."""
        who = self._who(position)
        return f"{who} opens ZooKeeper session {shown(event['session'])} as {shown(event['role'])}."

    def session_lost(self, position: int, event: Event) -> str:
        """A ZooKeeper session ended against the node's will."""
        who = self._who(position)
        return f"{who} learns that its {shown(event['role'])} session ended: its writes fail now."

    def claimed(self, position: int, event: Event) -> str:
        """A candidate claims an epoch."""
        who = self._who(position)
        return (
            f"{who} asks ZooKeeper to become the controller of epoch {event['epoch']}: only the "
            "first broker that creates /controller does."
        )

    def active(self, position: int, event: Event) -> str:
        """A controller is active."""
        return (
            f"{self._who(position)} is the controller of epoch {event['epoch']}; it loaded "
            f"metadata and recorded outcomes in {event['loaded_ms']:.0f} ms."
        )

    def resigned(self, position: int, event: Event) -> str:
        """A controller resigned."""
        return (
            f"{self._who(position)} is no longer the controller of epoch {event['epoch']}: "
            f"{shown(event['reason'])}."
        )

    def registered(self, position: int, event: Event) -> str:
        """A broker registered."""
        return f"{self._who(position)} registers in ZooKeeper: the cluster can see it."

    def started(self, position: int, event: Event) -> str:
        """A process started."""
        return f"{self._who(position)} starts as process {event['pid']}."

    def stopped(self, position: int, event: Event) -> str:
        """A process stopped."""
        return f"{self._who(position)} stops: {shown(event['reason'])}."

    def ended(self, position: int, event: Event) -> str:
        """The harness saw a process end."""
        status = event["status"]
        how = f"is killed by signal {-status}" if status < 0 else f"exits with status {status}"
        return f"{node_name(event['ended_node'])} {how}."

    def fault(self, position: int, event: Event) -> str:
        """A fault begins."""
        target = self._rows.value("peer", position)
        if event["action"] == "kill" and target and target == self._rows.controller(position):
            return (
                f"Fault: {node_name(str(event['target'])).lower()}, the controller, is killed. "
                "Requests wait until its ZooKeeper session ends and another broker is elected."
            )
        return f"Fault: {words(event['action'])} at {node_name(str(event['target'])).lower()}."

    def healed(self, position: int, event: Event) -> str:
        """A fault ends."""
        return f"Healed: {words(event['action'])} at {node_name(str(event['target'])).lower()}."

    def rule_acted(self, position: int, event: Event) -> str:
        """A fault rule acted."""
        what, rule = shown(event["action"]), shown(event["rule"])
        return f"{self._who(position)}: rule {rule} acts ({what}) on {self._request(position)}."

    def invoked(self, position: int, event: Event) -> str:
        """A workload's operation begins."""
        names = ", ".join(shown(str(name)) for name in event["elements"][:_NAMES_SHOWN_MAX])
        on = f" on {names}" if names else ""
        return f"{self._who(position)} begins {api_name(event['api_key'])}{on}."

    def completed(self, position: int, event: Event) -> str:
        """A workload's operation ends."""
        result = {"ok": "succeeds", "fail": "fails", "info": "ends with an unknown outcome"}
        return f"{self._who(position)}: an operation {result.get(event['outcome'], 'ends')}."


def _writers(captions: Captions) -> dict[str, Callable[[int, Event], str]]:
    """Return the method for each kind that has a method of its key's name."""
    return {key: getattr(captions, key) for key in NUMBERS if hasattr(Captions, key)}


def node_name(node: str) -> str:
    """Return `Broker 2`, or another process's name."""
    if node.isdecimal():
        return f"Broker {node}"
    source, _, name = node.partition("-")
    names = {"client": f"Client {name}", "harness": f"Harness {name}"}
    return names.get(source) or node.capitalize() or "ZooKeeper"


def words(name: str) -> str:
    """Return `cut from peers` for `cut_from_peers`."""
    return shown(name.replace("_", " "))


def shown(text: str) -> str:
    """Return a text from a user, cut to a readable length."""
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"
