"""Quirks on real nodes: a request that hangs, topics that cannot be used, and denials."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

import pytest

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import call_once
from bridgehead.raw_client.codec import encode_json, topic_body
from tests.integration.conftest import StartCluster
from tests.integration.processes import wait_until

METADATA, CREATE_TOPICS, DESCRIBE_ACLS, ALTER_CONFIGS, LIST_REASSIGNMENTS = 3, 19, 29, 33, 46
SILENCE_S = 1.0


def call(cluster: Cluster, broker: int, key: int, version: int, body: dict[str, Any]) -> Any:
    return call_once(cluster.bootstrap_server(broker), key, version, body)


def create_topic(cluster: Cluster, name: str, replicas: list[int] | None) -> int:
    """Create a topic with one partition, on these replicas; None lets the controller choose."""
    topic = topic_body(name, assignments=None if replicas is None else {0: replicas})
    body = {"topics": [topic], "timeoutMs": 300, "validateOnly": False}
    (result,) = call(cluster, 2, CREATE_TOPICS, 4, body)["topics"]
    return int(result["errorCode"])


def test_a_cluster_with_every_quirk_keeps_serving(
    start_brokers: StartCluster,
) -> None:
    """Even a new controller can load partitions that cannot have a leader."""
    cluster = start_brokers(controller=1, properties={"bridgehead.quirks": "kafka-3.9"})
    twice = {"resourceType": 2, "resourceName": "good", "configs": []}
    host, port = cluster.bootstrap_server(2).rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=SILENCE_S) as silent:
        body = {"resources": [twice, twice], "validateOnly": False}
        data = encode_json(ALTER_CONFIGS, 2, body)
        silent.sendall(struct.pack(">i", len(data)) + data)
        with pytest.raises(TimeoutError):
            silent.recv(1)
        assert create_topic(cluster, "good", None) == 0
    for name, replicas in (("none", []), ("unknown", [9]), ("negative", [-1])):
        assert create_topic(cluster, name, replicas) == 7
        assert create_topic(cluster, name, None) == 36
    cluster.move_controller(3)
    began = time.monotonic()
    assert create_topic(cluster, "later", None) == 0

    def leaders_at_broker_1() -> dict[str, int]:
        response = call(cluster, 1, METADATA, 1, {"topics": None})
        partitions = {topic["name"]: topic["partitions"] for topic in response["topics"]}
        return {
            name: partition[0]["leaderId"] for name, partition in partitions.items() if partition
        }

    def has_leaders(leaders: dict[str, int]) -> bool:
        return leaders.get("good", 0) > 0 and leaders.get("later", 0) > 0

    wait_until(leaders_at_broker_1, has_leaders, timeout_s=20 - (time.monotonic() - began))


def test_the_denial_quirk_puts_the_request_object_into_the_error_message(
    start_brokers: StartCluster,
) -> None:
    """Through a broker that forwards, the message also contains the Envelope."""
    cluster = start_brokers(
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
        response = call(cluster, broker, LIST_REASSIGNMENTS, 0, body)
        assert response["errorCode"] == 31
        texts.append(response["errorMessage"])
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
    described = call(cluster, 2, DESCRIBE_ACLS, 1, any_acl)
    assert described["errorCode"] == 31
    assert described["errorMessage"].endswith("buffer=null, envelope=None) is not authorized.")
