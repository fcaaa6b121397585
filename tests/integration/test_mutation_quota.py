"""The controller mutation quota on real nodes: refused or held up, by whichever broker is asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.json_form import decode_body, encode_body
from chaos.fidelity import Connection

StartCluster = Callable[..., Cluster]
CREATE_TOPICS, ALTER_QUOTAS, API_VERSIONS = 19, 49, 18
EXCEEDED, NONE = 89, 0
# At this rate a bucket holds 330 partitions and 30 come back each second.
RATE = 30.0


class Client:
    """One connection with a client id of its own."""

    def __init__(self, cluster: Cluster, broker: int, client_id: str) -> None:
        self._connection = Connection(cluster.bootstrap_server(broker))
        self._client_id = client_id

    def ask(self, key: int, version: int, body: dict[str, Any]) -> Any:
        head = encode_request_header(RequestHeader(key, version, 7, self._client_id))
        answer = self._connection.ask(head + encode_body(key, "request", version, body))
        assert isinstance(answer, bytes), answer
        _, at = decode_response_header(key, version, answer)
        return decode_body(key, "response", version, answer[at:])

    def create(self, *topics: tuple[str, int], version: int = 7) -> tuple[list[int], int | None]:
        """Return the topics' codes and the throttle time, where this version has one."""
        body: dict[str, Any] = {
            "topics": [
                {
                    "name": name,
                    "numPartitions": partitions,
                    "replicationFactor": 1,
                    "assignments": [],
                    "configs": [],
                }
                for name, partitions in topics
            ],
            "timeoutMs": 10_000,
        }
        if version >= 1:
            body["validateOnly"] = False
        answer = self.ask(CREATE_TOPICS, version, body)
        return [t["errorCode"] for t in answer["topics"]], answer.get("throttleTimeMs")

    def mute_s(self) -> float:
        """Return how long the broker lets this connection wait for the smallest answer."""
        began = time.monotonic()
        self.ask(API_VERSIONS, 0, {})
        return time.monotonic() - began


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
    answer = Client(cluster, 1, "admin").ask(ALTER_QUOTAS, 1, body)
    assert [e["errorCode"] for e in answer["entries"]] == [NONE]


def test_who_is_over_the_quota_is_refused_or_held_up_and_its_connection_is_mute(
    start_cluster: StartCluster,
) -> None:
    """The controller charges the client wherever it asks; the broker that was asked holds it up."""
    cluster = start_cluster(controller=1)
    set_rate(cluster, {"client-id": None})
    for broker in (1, 2):
        name = f"strict-{broker}"
        client = Client(cluster, broker, name)
        assert client.create((f"{name}-large", 375)) == ([NONE], 0)
        codes, throttle_ms = client.create((f"{name}-refused", 1), (f"{name}-too", 1))
        assert codes == [EXCEEDED, EXCEEDED]
        assert throttle_ms is not None
        assert 0 < throttle_ms <= 1500
        assert Client(cluster, broker, name).mute_s() < throttle_ms / 1000 - 0.1
        assert client.mute_s() > throttle_ms / 1000 - 0.4  # The other client took its time of it.
        assert client.create((f"{name}-refused", 1)) == ([NONE], 0)


def test_older_versions_are_held_up_where_the_broker_learns_of_it(
    start_cluster: StartCluster,
) -> None:
    """Version 0 has no throttle time: only the controller's own broker knows, as in Kafka."""
    cluster = start_cluster(controller=1)
    set_rate(cluster, {"user": "ANONYMOUS", "client-id": None})
    for broker in (1, 2):
        client = Client(cluster, broker, f"new-{broker}")
        codes, throttle_ms = client.create((f"new-{broker}", 360), version=4)
        assert codes == [NONE]
        assert throttle_ms is not None
        assert 0 < throttle_ms <= 1000
        assert client.mute_s() > throttle_ms / 1000 - 0.1
    at_controller, elsewhere = (Client(cluster, broker, f"old-{broker}") for broker in (1, 2))
    for client, name in ((at_controller, "here"), (elsewhere, "there")):
        assert client.create((name, 375), version=0) == ([NONE], None)
    assert elsewhere.mute_s() < 0.5
    assert at_controller.mute_s() > 0.5


def test_who_connects_too_often_is_taken_served_nothing_and_closed(
    start_cluster: StartCluster,
) -> None:
    """Each broker counts for itself; who is connected stays so."""
    cluster = start_cluster(controller=1, brokers=2)
    admin = Client(cluster, 1, "admin")
    entity = [{"entityType": "ip", "entityName": "127.0.0.1"}]
    ops = [{"key": "connection_creation_rate", "value": 2.0, "remove": False}]
    admin.ask(ALTER_QUOTAS, 1, {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False})
    deadline = time.monotonic() + 20
    closed_after_s = None
    while closed_after_s is None:
        assert time.monotonic() < deadline, "every connection was served"
        began = time.monotonic()
        try:
            Client(cluster, 2, "eager").mute_s()
        except AssertionError:  # The broker closed it.
            closed_after_s = time.monotonic() - began
    assert 0.1 < closed_after_s < 3
    assert admin.mute_s() < 0.5
