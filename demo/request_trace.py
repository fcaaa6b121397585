"""The steps of one request, from the nodes' events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TracedEvent:
    """One step of a request: when, on which node, and what happened."""

    at_ms: float
    node: str
    text: str


_TEXTS: Mapping[str, Callable[[Event], str]] = {
    "request_received": lambda e: "receives the request; is not the controller",
    "forward_sent": lambda e: f"sends an Envelope to the controller, broker {e['controller_id']}",
    "envelope_received": lambda e: f"opens the Envelope from broker {e['identity'][0]}",
    "execution_started": lambda e: f"validates and decides, in controller epoch {e['epoch']}",
    "request_decided": lambda e: f"wrote ZooKeeper transaction {e['zxid']}; responds",
    "forward_replied": lambda e: "receives the response in the Envelope",
    "responded": lambda e: "relays the response to the client, unchanged",
}


def read_events(run: Path) -> Iterator[Event]:
    """Yield the events of a run's nodes, complete lines only."""
    for path in sorted(run.glob("node=*/*.jsonl")):
        for line in path.read_bytes().split(b"\n")[:-1]:
            yield json.loads(line)


def last_write_of(events: list[Event], api_key: int) -> str:
    """Return the id of the last forwarded request of an API."""
    requests = [
        e
        for e in events
        if e["kind"] == "request_received" and e["api_key"] == api_key and e["route"] == "FORWARD"
    ]
    return str(max(requests, key=lambda e: e["mono_ns"])["request_id"])


def steps_of(events: list[Event], request_id: str) -> list[TracedEvent]:
    """Return a request's steps in order of time: all nodes use the same monotonic clock."""
    of_request = [e for e in events if e.get("request_id") == request_id and e["kind"] in _TEXTS]
    of_request.sort(key=lambda e: e["mono_ns"])
    began = of_request[0]["mono_ns"]
    return [
        TracedEvent((e["mono_ns"] - began) / 1e6, str(e["node"]), _TEXTS[e["kind"]](e))
        for e in of_request
    ]
