"""One request, stop by stop, out of the events that the nodes wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stop:
    """Where the request was, since when, and what happened there in plain words."""

    at_ms: float
    node: str
    what: str


_WORDS: Mapping[str, Callable[[Event], str]] = {
    "request_received": lambda e: "the client's request arrives; this broker is not the controller",
    "forward_sent": lambda e: (
        f"wraps it in an Envelope for the controller, broker {e['controller_id']}"
    ),
    "envelope_received": lambda e: f"opens the Envelope that broker {e['identity'][0]} has sent",
    "execution_started": lambda e: f"checks and decides, as controller of epoch {e['epoch']}",
    "request_decided": lambda e: f"written to ZooKeeper as transaction {e['zxid']}; answers",
    "forward_answered": lambda e: "the Envelope's answer is back",
    "answered": lambda e: "the client gets its answer, in the bytes the controller wrote",
}


def read_events(run: Path) -> Iterator[Event]:
    """Yield every event of a run's nodes written so far, whole lines only."""
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


def stops_of(events: list[Event], request_id: str) -> list[Stop]:
    """Return the way of one request. All nodes share this machine's monotonic clock."""
    own = [e for e in events if e.get("request_id") == request_id and e["kind"] in _WORDS]
    own.sort(key=lambda e: e["mono_ns"])
    began = own[0]["mono_ns"]
    return [Stop((e["mono_ns"] - began) / 1e6, str(e["node"]), _WORDS[e["kind"]](e)) for e in own]
