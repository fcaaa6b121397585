"""Properties from environment variables, which three kinds of images spell differently."""

from __future__ import annotations

import pytest

from node.environment import AmbiguousVariableError, properties_from


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_BROKER_ID", "broker.id"),
        ("KAFKA_ZOOKEEPER_CONNECT", "zookeeper.connect"),
        ("KAFKA_CFG_ZOOKEEPER_CONNECT", "zookeeper.connect"),
        ("KAFKA_BRIDGEHEAD_METADATA_DELAY_MS", "bridgehead.metadata.delay.ms"),
        ("KAFKA_LISTENER_NAME_CLIENT_SSL_CLIENT_AUTH", "listener.name.client.ssl.client.auth"),
        ("KAFKA_AN_UNKNOWN_NAME", "an.unknown.name"),  # Kafka also accepts unknown names
    ],
)
def test_single_underscore_is_a_dot(variable: str, name: str) -> None:
    assert properties_from({variable: "x"}) == {name: "x"}


def test_node_id_is_the_default_broker_id() -> None:
    assert properties_from({"KAFKA_NODE_ID": "4"})["broker.id"] == "4"
    both = {"KAFKA_NODE_ID": "4", "KAFKA_BROKER_ID": "5"}
    assert properties_from(both)["broker.id"] == "5"


@pytest.mark.parametrize("listener", ["SASL_SSL", "SASL-SSL"])
def test_listener_names_resolve_ambiguous_variables(listener: str) -> None:
    """`__` is `_` in one image and `-` in another."""
    properties = properties_from(
        {
            "KAFKA_LISTENERS": f"{listener}://:9092",
            "KAFKA_LISTENER_NAME_SASL__SSL_SSL_CLIENT_AUTH": "required",
        }
    )
    assert properties[f"listener.name.{listener.lower()}.ssl.client.auth"] == "required"


def test_listeners_of_the_file_resolve_ambiguous_variables() -> None:
    properties = properties_from(
        {"KAFKA_LISTENER_NAME_IN__SIDE_SSL_CLIENT_AUTH": "none"},
        {"listeners": "IN_SIDE://:9092"},
    )
    assert properties == {"listener.name.in_side.ssl.client.auth": "none"}


@pytest.mark.parametrize(
    "environment",
    [
        {"KAFKA_SOME__THING": "x"},
        {
            "KAFKA_LISTENERS": "A_B://:1,A-B://:2",
            "KAFKA_LISTENER_NAME_A__B_SSL_CLIENT_AUTH": "none",
        },
    ],
)
def test_ambiguous_variable_is_rejected(environment: dict[str, str]) -> None:
    with pytest.raises(AmbiguousVariableError, match=r"means .* in .* and .*: set the property in"):
        properties_from(environment)


def test_variables_for_the_jvm_are_ignored() -> None:
    environment = {
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "KAFKA_JMX_PORT": "9999",
        "KAFKA_LOG4J_ROOT_LOGLEVEL": "INFO",
        "PATH": "/bin",
    }
    assert properties_from(environment) == {}
