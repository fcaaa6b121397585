"""Environment variables as three families of images spell them, read as one broker's properties."""

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
        ("KAFKA_A_NAME_NOBODY_KNOWS", "a.name.nobody.knows"),  # Kafka keeps such a name too
    ],
)
def test_a_single_underscore_is_a_dot_in_every_family(variable: str, name: str) -> None:
    """Whether the property exists or not."""
    assert properties_from({variable: "x"}) == {name: "x"}


def test_the_node_id_names_the_broker_unless_its_own_id_is_given() -> None:
    """As a Kafka that has both reads them."""
    assert properties_from({"KAFKA_NODE_ID": "4"})["broker.id"] == "4"
    both = {"KAFKA_NODE_ID": "4", "KAFKA_BROKER_ID": "5"}
    assert properties_from(both)["broker.id"] == "5"


@pytest.mark.parametrize("listener", ["SASL_SSL", "SASL-SSL"])
def test_a_listener_that_exists_decides_between_the_two_readings(listener: str) -> None:
    """`__` is `_` to one image and `-` to another."""
    found = properties_from(
        {
            "KAFKA_LISTENERS": f"{listener}://:9092",
            "KAFKA_LISTENER_NAME_SASL__SSL_SSL_CLIENT_AUTH": "required",
        }
    )
    assert found[f"listener.name.{listener.lower()}.ssl.client.auth"] == "required"


def test_the_listeners_of_the_file_count_as_well() -> None:
    """The environment only adds to it."""
    found = properties_from(
        {"KAFKA_LISTENER_NAME_IN__SIDE_SSL_CLIENT_AUTH": "none"},
        {"listeners": "IN_SIDE://:9092"},
    )
    assert found == {"listener.name.in_side.ssl.client.auth": "none"}


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
def test_what_could_be_two_properties_is_refused_by_name(environment: dict[str, str]) -> None:
    """A guess would set the wrong one in silence."""
    with pytest.raises(AmbiguousVariableError, match=r"may mean .* or .*: put it into"):
        properties_from(environment)


def test_what_speaks_to_a_java_machine_is_no_property() -> None:
    """Compose files that were written for those images set such variables."""
    environment = {
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "KAFKA_JMX_PORT": "9999",
        "KAFKA_LOG4J_ROOT_LOGLEVEL": "INFO",
        "PATH": "/bin",
    }
    assert properties_from(environment) == {}
