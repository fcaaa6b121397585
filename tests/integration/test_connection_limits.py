"""Connection limits of a real node, changed at run time."""

from __future__ import annotations

import time
from typing import Final

from bridgehead.raw_client.blocking import CLOSED, Connection
from bridgehead.raw_client.codec import encode_json
from tests.integration.conftest import StartCluster

WITHIN_S: Final = 60
RESPONSE_S: Final = 1.0
ALTER, API_VERSIONS = 44, 18
LIMITED: Final = "127.0.0.9"


def served(client: Connection) -> bytes | str:
    return client.exchange(encode_json(API_VERSIONS, 0, {}))


def configure(admin: Connection, broker: str, name: str, value: str) -> None:
    """Set one config of a broker, or of all brokers if `broker` is empty."""
    config = {"name": name, "configOperation": 0, "value": value}
    resource = {"resourceType": 4, "resourceName": broker, "configs": [config]}
    body = {"resources": [resource], "validateOnly": False}
    (result,) = admin.call(ALTER, 0, body)["responses"]
    assert result["errorCode"] == 0, result


def test_stored_connection_limits_take_effect(
    start_brokers: StartCluster,
) -> None:
    cluster = start_brokers(
        brokers=1,
        properties={
            "listeners": "PLAINTEXT://:0,CLIENTS://:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT",
        },
    )
    admin = Connection(cluster.bootstrap_server(1))  # on the inter-broker listener
    address = cluster.bootstrap_server(1, "CLIENTS")
    deadline = time.monotonic() + WITHIN_S

    configure(admin, "", "max.connections.per.ip.overrides", f"{LIMITED}:1")
    first = Connection(address, LIMITED)
    while served(second := Connection(address, LIMITED)) != CLOSED:
        assert time.monotonic() < deadline, "the limit of an address never took effect"
        second.close()
    assert isinstance(served(first), bytes), "an existing connection was closed"
    other = Connection(address)
    assert isinstance(served(other), bytes), "the limit of one address applied to another"
    first.close()

    configure(admin, "1", "listener.name.clients.max.connections", "1")
    while isinstance(served(late := Connection(address, timeout_s=RESPONSE_S)), bytes):
        assert time.monotonic() < deadline, "the limit of a listener never took effect"
        late.close()
    other.close()
    late.set_timeout(WITHIN_S)
    assert isinstance(late.receive(), bytes), "the waiting connection was not served"

    configure(admin, "1", "max.connections", "1")
    late.set_timeout(WITHIN_S)
    assert late.receive() == CLOSED, "the broker did not close a connection above its limit"
    assert isinstance(served(admin), bytes), "the limit applied to the inter-broker listener"
