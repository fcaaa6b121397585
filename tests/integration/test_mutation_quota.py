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
EXCEEDED, NONE, TIMED_OUT = 89, 0, 7
# At this rate a bucket holds 110 partitions and 10 come back each second: who takes 150 owes 4 s,
# which is long for everything else that is done here, also on a machine that is busy.
RATE = 10.0
TOO_MANY = 150
OWED_MS = 4000


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

    def create(
        self, *topics: tuple[str, int], version: int = 7, timeout_ms: int = 20_000
    ) -> tuple[list[int], int | None]:
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
            "timeoutMs": timeout_ms,
        }
        if version >= 1:
            body["validateOnly"] = False
        answer = self.ask(CREATE_TOPICS, version, body)
        return [t["errorCode"] for t in answer["topics"]], answer.get("throttleTimeMs")

    def take_too_many(self, name: str, version: int = 7) -> int | None:
        """Create more than is left, without waiting for it; return the throttle time."""
        codes, throttle_ms = self.create((name, TOO_MANY), version=version, timeout_ms=0)
        assert codes == [TIMED_OUT]
        return throttle_ms

    def answered_at(self) -> float:
        """Return when the smallest request, sent now, is answered."""
        self.ask(API_VERSIONS, 0, {})
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
    answer = Client(cluster, 1, "admin").ask(ALTER_QUOTAS, 1, body)
    assert [e["errorCode"] for e in answer["entries"]] == [NONE]


def test_who_is_over_the_quota_is_refused_or_held_up_and_its_connection_is_mute(
    start_cluster: StartCluster,
) -> None:
    """The controller charges the client wherever it asks; the broker that was asked holds it up."""
    cluster = start_cluster(controller=1)
    set_rate(cluster, {"client-id": None})
    muted: list[tuple[Client, str, float]] = []
    for broker in (1, 2):
        name = f"strict-{broker}"
        client, another = Client(cluster, broker, name), Client(cluster, broker, name)
        assert client.take_too_many(f"{name}-large") == 0
        asked_at = time.monotonic()
        codes, throttle_ms = client.create((f"{name}-refused", 1), (f"{name}-too", 1))
        assert codes == [EXCEEDED, EXCEEDED]
        assert throttle_ms is not None
        assert 0 < throttle_ms <= OWED_MS
        may_speak_at = asked_at + throttle_ms / 1000
        assert another.answered_at() < may_speak_at
        muted.append((client, name, may_speak_at))
    for client, name, may_speak_at in muted:
        assert client.answered_at() >= may_speak_at
        assert client.create((f"{name}-refused", 1)) == ([NONE], 0)


def test_older_versions_are_held_up_where_the_broker_learns_of_it(
    start_cluster: StartCluster,
) -> None:
    """Version 0 has no throttle time: only the controller's own broker knows, as in Kafka."""
    cluster = start_cluster(controller=1)
    set_rate(cluster, {"user": "ANONYMOUS", "client-id": None})
    muted: list[tuple[Client, float]] = []
    for broker in (1, 2):
        client = Client(cluster, broker, f"new-{broker}")
        asked_at = time.monotonic()
        throttle_ms = client.take_too_many(f"new-{broker}", version=4)
        assert throttle_ms is not None
        assert 0 < throttle_ms <= OWED_MS
        muted.append((client, asked_at + throttle_ms / 1000))
    at_controller, elsewhere = (Client(cluster, broker, f"old-{broker}") for broker in (1, 2))
    for client, name in ((at_controller, "here"), (elsewhere, "there")):
        asked_at = time.monotonic()
        assert client.take_too_many(name, version=0) is None
        if client is elsewhere:
            assert client.answered_at() < asked_at + OWED_MS / 1000 - 1
        else:
            muted.append((client, asked_at + OWED_MS / 1000 - 1))
    for client, may_speak_at in muted:
        assert client.answered_at() >= may_speak_at


def test_who_connects_too_often_is_taken_served_nothing_and_closed(
    start_cluster: StartCluster,
) -> None:
    """Each broker counts for itself; who is connected stays so."""
    cluster = start_cluster(controller=1, brokers=2)
    admin = Client(cluster, 1, "admin")
    entity = [{"entityType": "ip", "entityName": "127.0.0.1"}]
    ops = [{"key": "connection_creation_rate", "value": 2.0, "remove": False}]
    admin.ask(ALTER_QUOTAS, 1, {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False})
    deadline = time.monotonic() + 60
    closed_after_s = None
    while closed_after_s is None:
        assert time.monotonic() < deadline, "every connection was served"
        began = time.monotonic()
        try:
            Client(cluster, 2, "eager").answered_at()
        except AssertionError:  # The broker closed it.
            closed_after_s = time.monotonic() - began
    assert closed_after_s > 0.1
    began = time.monotonic()
    assert admin.answered_at() < began + 10
