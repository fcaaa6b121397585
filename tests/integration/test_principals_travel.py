"""Brokers forward custom principals, and fake ones in the first stage of KIP-590's rollout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import create_topic_body
from tests.integration.processes import wait_until
from tests.integration.secured import PACKAGE, Secured

PATH = "tests.integration.principal_builders"
PROPERTIES = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'{PACKAGE}.plain.PlainLoginModule required user_alice@blue="word" user_bob="word";'
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _path() -> Iterator[None]:
    """Let the nodes import this test's principal builders."""
    with pytest.MonkeyPatch.context() as patch:
        paths = (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        yield


def create(cluster: Cluster, broker: int, user: str, topic: str) -> int:
    """Log in at this broker and create a topic through it; return the topic's error code."""
    with Connection(cluster.bootstrap_server(broker)) as connection:
        assert connection.log_in(user, "word")
        response = connection.call(ApiKey.CREATE_TOPICS, 7, create_topic_body(topic))
    code: int = response["topics"][0]["errorCode"]
    return code


def decided(cluster: Cluster) -> set[object]:
    return {e["principal"] for e in Secured.events_of(cluster, 1, "request_decided")}


def rejections(cluster: Cluster) -> list[object]:
    """Wait until the controller has rejected an Envelope; return the errors of all rejected ones.

    The event of a rejection may be written after the response is sent.
    """
    wait_until(lambda: bool(Secured.events_of(cluster, 1, "envelope_rejected")))
    return [event["error"] for event in Secured.events_of(cluster, 1, "envelope_rejected")]


def start(builder: str, **node_properties: dict[str, str]) -> Cluster:
    properties = {**PROPERTIES, **({"principal.builder.class": builder} if builder else {})}
    properties |= node_properties.get("all", {})
    nodes = {2: node_properties.get("second", {})}
    return Cluster(brokers=2, controller=1, properties=properties, node_properties=nodes)


def test_a_custom_principal_arrives_unchanged() -> None:
    with start(f"{PATH}.Teams") as cluster:
        assert create(cluster, 2, "alice@blue", "orders") == ErrorCode.NONE
        assert decided(cluster) == {"Member:alice"}
        with Connection(cluster.bootstrap_server(2)) as connection:
            assert not connection.log_in("bob", "word")  # bob has no team: the builder raises
        wait_until(lambda: bool(Secured.events_of(cluster, 2, "authentication_failed")))
        (failed, *_) = Secured.events_of(cluster, 2, "authentication_failed")
        assert failed["reason"] == "the principal builder failed: ValueError"


def test_another_builders_principal_is_rejected() -> None:
    other = {"principal.builder.class": f"{PATH}.OtherTeams"}
    with start(f"{PATH}.Teams", second=other) as cluster:
        rejected = create(cluster, 2, "alice@blue", "orders")
        assert rejected == ErrorCode.UNKNOWN_SERVER_ERROR
        assert rejections(cluster) == [ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE]
        assert decided(cluster) == set()
        # Broker 1 is the controller, so broker and controller have the same builder.
        assert create(cluster, 1, "alice@blue", "orders") == ErrorCode.NONE


def test_fake_principals_are_forwarded_in_the_first_stage_only() -> None:
    """All brokers have `bridgehead.forwarding.principals=fake` in the first stage.

    A controller without this property rejects an Envelope with a fake principal.
    """
    fake = {"bridgehead.forwarding.principals": "fake"}
    with start("", all=fake) as cluster:
        assert create(cluster, 2, "alice@blue", "orders") == ErrorCode.NONE
        assert decided(cluster) == {"Fake:alice@blue"}
    with start("", second=fake) as cluster:
        rejected = create(cluster, 2, "alice@blue", "orders")
        assert rejected == ErrorCode.UNKNOWN_SERVER_ERROR
        assert rejections(cluster) == [ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE]
