"""The controller mutation quota at every broker of a cluster, and the connection creation rate."""

from __future__ import annotations

import time
from typing import Any

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import topic_body
from tests.integration.conftest import StartCluster

CREATE_TOPICS, ALTER_QUOTAS, API_VERSIONS = 19, 49, 18
EXCEEDED, NONE, TIMED_OUT = 89, 0, 7
# At this rate a bucket holds 110 tokens (partitions) and gets 10 per second. After 150 partitions
# the throttle time is 4 s, longer than any other step of these tests, even on a busy machine.
RATE = 10.0
TOO_MANY = 150
THROTTLE_MS = 4000


class Client:
    """One connection with its own client id."""

    def __init__(self, cluster: Cluster, broker: int, client_id: str) -> None:
        self._connection = Connection(cluster.bootstrap_server(broker))
        self._client_id = client_id

    def call(self, key: int, version: int, body: dict[str, Any]) -> Any:
        return self._connection.call(key, version, body, client_id=self._client_id)

    def create(
        self, *topics: tuple[str, int], version: int = 7, timeout_ms: int = 20_000
    ) -> tuple[list[int], int | None]:
        """Create topics; return their error codes, and the throttle time if the version has one."""
        body: dict[str, Any] = {
            "topics": [topic_body(name, partitions) for name, partitions in topics],
            "timeoutMs": timeout_ms,
        }
        if version >= 1:
            body["validateOnly"] = False
        response = self.call(CREATE_TOPICS, version, body)
        return [t["errorCode"] for t in response["topics"]], response.get("throttleTimeMs")

    def take_too_many(self, name: str, version: int = 7) -> int | None:
        """Exceed the quota, without waiting for leaders; return the throttle time."""
        codes, throttle_ms = self.create((name, TOO_MANY), version=version, timeout_ms=0)
        assert codes == [TIMED_OUT]
        return throttle_ms

    def responded_at(self) -> float:
        """Send a small request; return the time of its response."""
        self.call(API_VERSIONS, 0, {})
        return time.monotonic()


def set_rate(cluster: Cluster, entity: dict[str, str | None]) -> None:
    body = {
        "entries": [
            {
                "entity": [{"entityType": t, "entityName": n} for t, n in entity.items()],
                "ops": [{"key": "controller_mutation_rate", "value": RATE, "remove": False}],
            }
        ],
        "validateOnly": False,
    }
    response = Client(cluster, 1, "admin").call(ALTER_QUOTAS, 1, body)
    assert [e["errorCode"] for e in response["entries"]] == [NONE]


def test_requests_above_the_quota_are_rejected_and_their_connection_is_muted(
    start_brokers: StartCluster,
) -> None:
    """The controller applies the quota for every broker. A client's broker mutes the connection."""
    cluster = start_brokers(controller=1)
    set_rate(cluster, {"client-id": None})
    muted: list[tuple[Client, str, float]] = []
    for broker in (1, 2):
        name = f"strict-{broker}"
        client, another = Client(cluster, broker, name), Client(cluster, broker, name)
        assert client.take_too_many(f"{name}-large") == 0
        sent_at = time.monotonic()
        codes, throttle_ms = client.create((f"{name}-refused", 1), (f"{name}-too", 1))
        assert codes == [EXCEEDED, EXCEEDED]
        assert throttle_ms is not None
        assert 0 < throttle_ms <= THROTTLE_MS
        unmuted_at = sent_at + throttle_ms / 1000
        assert another.responded_at() < unmuted_at
        muted.append((client, name, unmuted_at))
    for client, name, unmuted_at in muted:
        assert client.responded_at() >= unmuted_at
        assert client.create((f"{name}-refused", 1)) == ([NONE], 0)


def test_older_versions_are_throttled_but_version_0_only_at_the_controller(
    start_brokers: StartCluster,
) -> None:
    """As in Kafka, a forwarding broker cannot throttle v0, whose response has no throttle time."""
    cluster = start_brokers(controller=1)
    set_rate(cluster, {"user": "ANONYMOUS", "client-id": None})
    muted: list[tuple[Client, float]] = []
    for broker in (1, 2):
        client = Client(cluster, broker, f"new-{broker}")
        sent_at = time.monotonic()
        throttle_ms = client.take_too_many(f"new-{broker}", version=4)
        assert throttle_ms is not None
        assert 0 < throttle_ms <= THROTTLE_MS
        muted.append((client, sent_at + throttle_ms / 1000))
    at_controller, at_other = (Client(cluster, broker, f"old-{broker}") for broker in (1, 2))
    for client, name in ((at_controller, "here"), (at_other, "there")):
        sent_at = time.monotonic()
        assert client.take_too_many(name, version=0) is None
        if client is at_other:
            assert client.responded_at() < sent_at + THROTTLE_MS / 1000 - 1
        else:
            muted.append((client, sent_at + THROTTLE_MS / 1000 - 1))
    for client, unmuted_at in muted:
        assert client.responded_at() >= unmuted_at


def test_a_connection_above_the_creation_rate_is_closed_after_a_delay(
    start_brokers: StartCluster,
) -> None:
    """Each broker counts the new connections to itself. Existing connections stay open."""
    cluster = start_brokers(controller=1, brokers=2)
    admin = Client(cluster, 1, "admin")
    entity = [{"entityType": "ip", "entityName": "127.0.0.1"}]
    ops = [{"key": "connection_creation_rate", "value": 2.0, "remove": False}]
    admin.call(
        ALTER_QUOTAS, 1, {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False}
    )
    deadline = time.monotonic() + 60
    closed_after_s = None
    while closed_after_s is None:
        assert time.monotonic() < deadline, "every connection was served"
        began = time.monotonic()
        try:
            Client(cluster, 2, "eager").responded_at()
        except ConnectionError:  # The broker closed the connection.
            closed_after_s = time.monotonic() - began
    assert closed_after_s > 0.1
    began = time.monotonic()
    assert admin.responded_at() < began + 10
