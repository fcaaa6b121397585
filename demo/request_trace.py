"""The steps of one request, from the nodes' events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.errors import ErrorCode

Event = Mapping[str, Any]
_ELEMENTS_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class TracedEvent:
    """One step of a request: when, on which node, and what happened."""

    at_ms: float
    node: str
    text: str


def _received(event: Event) -> str:
    ends = {
        "FORWARD": "; the controller must decide it",
        "DIRECT": "; writes to ZooKeeper itself",
        "LOCAL": "; answers it itself",
        "NOT_CONTROLLER": "; does not forward it",
        "CLOSE": "; closes the connection",
    }
    return "receives the request" + ends.get(event["route"], "")


def _sent(event: Event) -> str:
    where = "in this process" if event["local"] else f"broker {event['controller_id']}"
    again = f", attempt {event['attempt']}" if event["attempt"] > 1 else ""
    return f"sends an Envelope to the controller, {where}{again}"


def _replied(event: Event) -> str:
    if event["error"] is None:
        return "gets no reply to the Envelope"
    if event["error"]:
        return f"gets {error_name(event['error'])} for the Envelope"
    return "receives the response in the Envelope"


def _decided(event: Event) -> str:
    if event["error"]:
        return f"rejects the request: {error_name(event['error'])}"
    results = [f"{name} {error_name(code)}" for name, code in event["elements"][:_ELEMENTS_MAX]]
    more = len(event["elements"]) - _ELEMENTS_MAX
    shown = ", ".join([*results, *([f"{more} more"] if more > 0 else [])])
    written = any(code == 0 and name not in event["unchanged"] for name, code in event["elements"])
    if written and not event["validate_only"]:
        return f"wrote ZooKeeper transaction {event['zxid']}; responds: {shown}"
    return f"wrote nothing; responds: {shown}"


def _responded(event: Event) -> str:
    if event["closed"]:
        return "closes the client's connection"
    if event["error"]:
        return f"responds {error_name(event['error'])} to the client"
    if event["route"] == "FORWARD":
        return "relays the response to the client, unchanged"
    return "responds to the client"


_TEXTS: Final[Mapping[str, Callable[[Event], str]]] = {
    "request_received": _received,
    "fault_rule_acted": lambda e: f"fault rule {e['rule']} acts: {e['action']} ({e['phase']})",
    "topics_auto_created": lambda e: f"creates {', '.join(e['topics'])} for request {e['cause']}",
    "forward_sent": _sent,
    "envelope_received": lambda e: f"opens the Envelope from broker {e['identity'][0]}",
    "envelope_rejected": lambda e: f"rejects the Envelope: {e['reason']}",
    "execution_started": lambda e: f"validates and decides, in controller epoch {e['epoch']}",
    "request_decided": _decided,
    "forward_replied": _replied,
    "responded": _responded,
}


def error_name(code: int) -> str:
    """Return the name of an error code; 0 is `ok`."""
    if code == 0:
        return "ok"
    return ErrorCode(code).name if code in ErrorCode.__members__.values() else str(code)


def api_name(key: int) -> str:
    """Return the name of an API, such as CreateTopics."""
    return API_SPECS[ApiKey(key)].name if key in API_SPECS else f"API {key}"


def read_events(run: Path) -> Iterator[Event]:
    """Yield the events of a run's nodes, complete lines only. Malformed lines are skipped."""
    for path in sorted(run.glob("node=*/*.jsonl")):
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and "kind" in event:
                yield event


def requests_of(
    events: Iterable[Event], *, api_key: int | None = None, client_id: str | None = None
) -> list[Event]:
    """Return the `request_received` of each request, in order of time.

    Without `api_key`, these are the requests that change metadata.
    """
    chosen = [
        event
        for event in events
        if event["kind"] == "request_received"
        and (
            event["api_key"] == api_key
            or (api_key is None and event["route"] in ("FORWARD", "DIRECT"))
        )
        and client_id in (None, event["client_id"])
    ]
    return sorted(chosen, key=lambda event: int(event["mono_ns"]))


def steps_of(events: Iterable[Event], request_id: str) -> list[TracedEvent]:
    """Return a request's steps in order of time: all nodes use the same monotonic clock."""
    of_request = [e for e in events if e.get("request_id") == request_id and e["kind"] in _TEXTS]
    of_request.sort(key=lambda e: e["mono_ns"])
    return [
        TracedEvent(
            at_ms=(e["mono_ns"] - of_request[0]["mono_ns"]) / 1e6,
            node=str(e["node"]),
            text=printable(_TEXTS[e["kind"]](e)),
        )
        for e in of_request
    ]


def printable(text: str) -> str:
    """Return text in which characters that a terminal would obey, such as ESC, are escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
