"""Captured Envelopes have no second effect if they are sent again after a failover.

The channel has no TLS here, so a recording proxy sees what the brokers send to the controller. The
test sends these bytes again. With TLS, the bytes of one connection are of no use on another.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.hostile.envelopes import enveloped
from tests.hostile.envelopes import outcome as envelope_outcome
from tests.hostile.requests import Request, create_topics, principal
from tests.hostile.scram import plain
from tests.hostile.target import PROTECTED, bridgehead, znodes
from tests.hostile.wire import Field, Wire, array, flat, head, i8, i32, joined, text

CONTROLLER, BROKERS = 1, (1, 2, 3)
WITHIN_S = 60.0


class Recorder:
    """A proxy in front of one port. It records what each client sends, byte for byte."""

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.streams: list[bytearray] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._upstream))
            except OSError:
                return
            self.streams.append(bytearray())
            for pair in ((near, far, self.streams[-1]), (far, near, bytearray())):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket, record: bytearray) -> None:
        try:
            while data := source.recv(65536):
                record += data
                sink.sendall(data)
        except OSError:
            pass
        for stream in (source, sink):
            stream.close()

    def close(self) -> None:
        self._listener.close()


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port that a server with SO_REUSEADDR can bind; no other program gets it from the kernel."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        yield bound.getsockname()[1]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Cluster:
    """Three brokers without TLS between them; broker 1, the controller, is behind the proxy."""

    def __init__(self, data: Path, document: dict[str, Any]) -> None:
        self.data = data
        self._document = document

    def address(self, broker: int, listener: str) -> str:
        (entry,) = (node for node in self._document["brokers"] if node["id"] == broker)
        return str(entry["listeners"][listener])

    def protected(self) -> dict[str, bytes]:
        """Return the metadata znodes, except partition states, which a broker's death changes."""
        contents = znodes(self._document["zookeeper_connect"], PROTECTED)
        return {path: data for path, data in contents.items() if not path.endswith("/state")}

    def controller(self) -> int | None:
        status = json.loads(bridgehead("status", "--json", "--data-dir", str(self.data)).stdout)
        controller_id: int | None = status["controller_id"]
        return controller_id

    def envelopes_at(self, broker: int) -> Counter[str]:
        """Return how often each request arrived in an Envelope, by request id."""
        files = self.data.glob(f"evidence/run=*/node={broker}/*.jsonl")
        lines = (line for file in files for line in file.read_text().splitlines())
        events = (json.loads(line) for line in lines if '"envelope_received"' in line)
        return Counter(event["request_id"] for event in events)

    def grpc(self, broker: int) -> str:
        path = self.data / "nodes" / str(broker) / "ready.json"
        return str(json.loads(path.read_text())["grpc"])


@contextmanager
def started(folder: Path) -> Iterator[tuple[Cluster, Recorder]]:
    with reserved_port() as back, closing(Recorder(back)) as recorder:
        config, data = folder / "cluster.yaml", folder / "data"
        config.write_text(yaml.safe_dump(described(recorder.port, back)))
        try:
            files = "--config", str(config), "--data-dir", str(data)
            up = bridgehead("up", "--json", "--ports", "auto", "--detach", *files)
            yield Cluster(data, json.loads(up.stdout)), recorder
        finally:
            bridgehead("down", "--data-dir", str(data), check=False)


def described(front: int, back: int) -> dict[str, Any]:
    """Return cluster.yaml: the controller listens at `back`, and others reach it at `front`."""
    return {
        "brokers": len(BROKERS),
        "controller": CONTROLLER,
        "listeners": {
            "OPEN": {"protocol": "PLAINTEXT"},
            "INTERNAL": {"protocol": "SASL_PLAINTEXT"},
        },
        "users": {
            "admin": {"password": "admin-secret", "super": True},
            "forwarder": "forwarder-secret",
        },
        "acls": [
            {
                "principal": "User:forwarder",
                "operations": ["cluster_action"],
                "resource": "cluster",
            }
        ],
        "properties": {
            "bridgehead.grpc.tls": "false",
            "super.users": "User:ANONYMOUS",
            "inter.broker.listener.name": "INTERNAL",
            "bridgehead.data.plane": "false",  # otherwise brokers would need a login for INTERNAL
            "zookeeper.session.timeout.ms": "2000",
        },
        "nodes": {
            CONTROLLER: {
                "bridgehead.grpc.listener": f"127.0.0.1:{back}",
                "bridgehead.grpc.advertised.listener": f"127.0.0.1:{front}",
            }
        },
    }


def retention(value: str) -> list[Field]:
    entry = flat(text("retention.ms"), i8(0), text(value))
    return flat(array(flat(i8(2), text("kept"), array(entry))), i8(0))


def grown() -> list[Field]:
    return flat(array(flat(text("kept"), i32(3), i32(-1))), i32(10_000), i8(0))


CREATE, DELETE, ALTER, GROW = (19, 4), (20, 3), (44, 0), (37, 1)
WRITES = (
    Request("create", *CREATE, False, lambda: create_topics("kept"), "4 4 s e", 0),
    Request("create", *CREATE, False, lambda: create_topics("gone"), "4 4 s e", 0),
    Request("configure", *ALTER, False, lambda: retention("1000"), "4 4 e", 0),
    Request("configure", *ALTER, False, lambda: retention("2000"), "4 4 e", 0),
    Request("grow", *GROW, False, grown, "4 4 s e", 0),
    Request("delete", *DELETE, False, lambda: flat(array(text("gone")), i32(10_000)), "4 4 s e", 0),
)


PREFACE, FRAME_HEAD_BYTES, PING = 24, 9, 6  # of HTTP/2, RFC 9113


def without_pings(stream: bytes) -> bytes:
    """Omit PING frames, because the server closes a connection that sends too many at once."""
    out, at = bytearray(stream[:PREFACE]), PREFACE
    while at < len(stream):
        end = at + FRAME_HEAD_BYTES + int.from_bytes(stream[at : at + 3], "big")
        if stream[at + 3] != PING:
            out += stream[at:end]
        at = end
    return bytes(out)


def replay(address: str, stream: bytes, received: Callable[[], bool]) -> None:
    """Send a recorded stream again, without its PINGs; return when `received` returns True."""
    with Wire(address) as wire:
        wire.raw(without_pings(stream))
        until(received)


def by_envelope(cluster: Cluster, broker: int, data: bytes) -> str:
    with Wire(cluster.address(broker, "INTERNAL")) as wire:
        assert plain(wire, b"\0forwarder\0forwarder-secret") == "0"
        return envelope_outcome(wire.call(data))


@pytest.mark.long
def test_captured_envelopes_have_no_second_effect_after_a_failover(tmp_path: Path) -> None:
    inner = joined([*head(*CREATE), *create_topics("enveloped")])
    captured = enveloped(inner, principal("User", "admin"))
    with started(tmp_path) as (cluster, recorder):
        for broker in BROKERS[1:]:
            with Wire(cluster.address(broker, "OPEN")) as wire:
                for write in WRITES if broker == BROKERS[1] else ():
                    response = wire.call(write.payload())
                    assert isinstance(response, bytes)
                    assert write.error_of(response) == 0, write.name
        assert by_envelope(cluster, CONTROLLER, captured) == "0/0"
        requests = {key for key in cluster.envelopes_at(CONTROLLER) if key.startswith("2.")}
        before, streams = cluster.protected(), [bytes(recorded) for recorded in recorder.streams]
        assert len(requests) >= len(WRITES)
        assert {"/brokers/topics/kept", "/brokers/topics/enveloped"} <= before.keys()
        assert "/brokers/topics/gone" not in before
        bridgehead("controller", "kill", "--data-dir", str(cluster.data))
        until(lambda: cluster.controller() in BROKERS[1:])
        successor = cluster.controller()
        assert successor is not None
        (stream,) = (candidate for candidate in streams if b"kept" in candidate)
        address = cluster.grpc(successor)
        replay(address, stream, lambda: requests <= cluster.envelopes_at(successor).keys())
        # Kafka's Envelope has no identity, so the controller executes it again and finds the topic.
        assert by_envelope(cluster, successor, captured) == "0/36"
        assert cluster.protected() == before
        bridgehead("down", "--data-dir", str(cluster.data))
        judged = bridgehead("judge", str(cluster.data), check=False)
    assert judged.returncode == 0, judged.stdout
    assert re.search("PASS +F7 ", judged.stdout)
    for log in cluster.data.glob("nodes/*/node.log"):
        assert "Traceback" not in log.read_text()
