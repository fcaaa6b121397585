"""A malformed request closes its connection, as in Kafka, and harms no node.

The test covers every version of every API that needs no data plane, if the request has a body.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.json_form import decode_body
from bridgehead.raw_client.blocking import CLOSED, Connection
from broker_proxy.requests.routing import WITHOUT_DATA_PLANE
from tests.integration.conftest import StartCluster

DATA: Final = Path(__file__).parents[1] / "data"
FORWARDING: Final = 2
# The test does not send requests that need a data plane.
SERVED: Final = {
    (key, version) for key in WITHOUT_DATA_PLANE["shipped"] for version in API_SPECS[key].versions
}


def requests(file: str) -> Iterator[dict[str, Any]]:
    """Yield a file's requests of the APIs and versions in SERVED."""
    with gzip.open(DATA / file, "rt", encoding="utf-8") as lines:
        for case in map(json.loads, lines):
            if case["kind"] == "request" and (case["key"], case["version"]) in SERVED:
                yield case


def malformed() -> Iterator[tuple[int, int, bytes]]:
    """Yield requests that Kafka's classes reject: damaged requests and truncated ones."""
    for case in requests("hostile.jsonl.gz"):
        if case["body"] is None:
            yield case["key"], case["version"], bytes.fromhex(case["hex"])
    for case in requests("codec.jsonl.gz"):
        data = bytes.fromhex(case["hex"])
        if data:
            yield case["key"], case["version"], data[: len(data) // 2]
            yield case["key"], case["version"], data[:-1]


class ReconnectingClient:
    """A client of one broker. `call` replaces a closed connection."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connection: Connection | None = None

    def call(self, key: int, version: int, body: bytes) -> bytes | str:
        if self._connection is None:
            self._connection = Connection(self._address)
        head = encode_request_header(RequestHeader(key, version, 7, "malformed"))
        response = self._connection.exchange(head + body)
        if isinstance(response, str):
            self.close()
        return response

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def test_malformed_requests_close_the_connection(
    start_brokers: StartCluster,
) -> None:
    """Every body that Kafka's classes reject, in every API and version, closes the connection.

    A damaged body that Kafka's classes accept gets a response in the version of the request, or
    closes the connection. No node logs an exception.
    """
    cluster = start_brokers(brokers=2, controller=1)
    client = ReconnectingClient(cluster.bootstrap_server(FORWARDING))
    closed: Counter[tuple[int, int]] = Counter()
    for key, version, body in malformed():
        response = client.call(key, version, body)
        assert response == CLOSED, (API_SPECS[key].name, version, body.hex(), response)
        closed[key, version] += 1
    without_body = {(key, 0) for key in (16, 18)} | {(18, 1), (18, 2)}
    assert SERVED - set(closed) <= without_body | {(16, version) for version in (1, 2)}
    responded = 0
    for case in requests("hostile.jsonl.gz"):
        if case["body"] is not None:
            key, version = case["key"], case["version"]
            response = client.call(key, version, bytes.fromhex(case["hex"]))
            if isinstance(response, bytes):
                _, at = decode_response_header(key, version, response)
                decode_body(key, "response", version, response[at:])
                responded += 1
            else:
                assert response == CLOSED, case
    assert responded > 250
    client.close()
    for broker in (1, 2):
        log = cluster.data_dir / "nodes" / str(broker) / "node.log"
        assert "Traceback" not in log.read_text(encoding="utf-8")
