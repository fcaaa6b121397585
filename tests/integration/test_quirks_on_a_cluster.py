"""Quirks on real nodes: a hanging request costs nobody else, an unusable topic breaks nothing."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.json_form import decode_body, encode_body
from chaos.fidelity import Connection

StartCluster = Callable[..., Cluster]
METADATA, CREATE_TOPICS, DESCRIBE_ACLS, ALTER_CONFIGS, LIST_REASSIGNMENTS = 3, 19, 29, 33, 46
SILENCE_S = 1.0


def request_bytes(key: int, version: int, body: dict[str, Any]) -> bytes:
    head = encode_request_header(RequestHeader(key, version, 7, "test"))
    return head + encode_body(key, "request", version, body)


def ask(cluster: Cluster, broker: int, key: int, version: int, body: dict[str, Any]) -> Any:
    connection = Connection(cluster.bootstrap_server(broker))
    answer = connection.ask(request_bytes(key, version, body))
    connection.close()
    assert isinstance(answer, bytes), answer
    _, at = decode_response_header(key, version, answer)
    return decode_body(key, "response", version, answer[at:])


def created(cluster: Cluster, name: str, replicas: list[int] | None) -> int:
    """Create a topic of one partition, with these replicas or as the controller likes."""
    given = replicas is not None
    topic = {
        "name": name,
        "numPartitions": -1 if given else 1,
        "replicationFactor": -1 if given else 1,
        "assignments": [{"partitionIndex": 0, "brokerIds": replicas}] if given else [],
        "configs": [],
    }
    body = {"topics": [topic], "timeoutMs": 300, "validateOnly": False}
    (result,) = ask(cluster, 2, CREATE_TOPICS, 4, body)["topics"]
    return int(result["errorCode"])


def test_with_every_quirk_a_cluster_misbehaves_as_kafka_and_goes_on(
    start_cluster: StartCluster,
) -> None:
    """Also under the next controller, which loads what nobody can lead."""
    cluster = start_cluster(controller=1, properties={"bridgehead.quirks": "kafka-3.9"})
    twice = {"resourceType": 2, "resourceName": "good", "configs": []}
    host, port = cluster.bootstrap_server(2).rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=SILENCE_S) as silent:
        body = {"resources": [twice, twice], "validateOnly": False}
        data = request_bytes(ALTER_CONFIGS, 2, body)
        silent.sendall(struct.pack(">i", len(data)) + data)
        with pytest.raises(TimeoutError):
            silent.recv(1)
        assert created(cluster, "good", None) == 0
    for name, replicas in (("none", []), ("unknown", [9]), ("negative", [-1])):
        assert created(cluster, name, replicas) == 7
        assert created(cluster, name, None) == 36
    cluster.move_controller(3)
    began = time.monotonic()
    assert created(cluster, "later", None) == 0
    answer = ask(cluster, 1, METADATA, 1, {"topics": None})
    told = {topic["name"]: topic["partitions"] for topic in answer["topics"]}
    assert {"good", "later"} <= set(told)
    assert all(told[name][0]["leaderId"] > 0 for name in ("good", "later"))
    assert time.monotonic() - began < 20


def test_who_is_denied_is_shown_the_insides_of_the_request(start_cluster: StartCluster) -> None:
    """At the controller's own broker its request, elsewhere the Envelope around it too."""
    cluster = start_cluster(
        controller=1,
        brokers=2,
        properties={
            "authorizer.class.name": "tests.integration.brokers_only.BrokersOnly",
            "bridgehead.quirks": "denial-dumps-request",
        },
    )
    body = {"timeoutMs": 1000, "topics": None}
    texts = []
    for broker in (1, 2):
        answer = ask(cluster, broker, LIST_REASSIGNMENTS, 0, body)
        assert answer["errorCode"] == 31
        texts.append(answer["errorMessage"])
    assert all(text.startswith("Request Request(processor=") for text in texts)
    assert ["envelope=Some(Request(" in text for text in texts] == [False, True]
    any_acl = {
        "resourceTypeFilter": 1,
        "resourceNameFilter": None,
        "patternTypeFilter": 1,
        "principalFilter": None,
        "hostFilter": None,
        "operation": 1,
        "permissionType": 1,
    }
    described = ask(cluster, 2, DESCRIBE_ACLS, 1, any_acl)
    assert described["errorCode"] == 31
    assert described["errorMessage"].endswith("buffer=null, envelope=None) is not authorized.")
