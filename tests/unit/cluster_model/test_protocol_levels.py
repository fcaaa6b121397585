"""inter.broker.protocol.version: parsed as in Kafka 3.9.1, and the switch to forwarding."""

from __future__ import annotations

import pytest

from bridgehead.kafka_wire.apis import Route
from broker_proxy.requests.routing import WITHOUT_DATA_PLANE, choose_route
from cluster_model.configs.broker_configs.static import InvalidBrokerConfigError
from cluster_model.direct_writes import WRITTEN_BY_BROKERS
from cluster_model.inter_broker_protocol import BRIDGE, LEVELS, is_below_the_bridge, level_of
from node.config import NodeConfigError, read_config

GOOD = "broker.id=1\nzookeeper.connect=127.0.0.1:2181\n"


@pytest.mark.parametrize(
    ("text", "level"),
    [
        *(("2.8", "2.8-IV1"), ("3.3", "3.3-IV3"), ("3.4", "3.4-IV0"), ("3.4.1", "3.4-IV0")),
        *(("3.4.x", "3.4-IV0"), ("3.4-IV0.1", "3.4-IV0"), ("3.9", "3.9-IV0")),
        *(("0.10.0", "0.10.0-IV1"), ("0.10.0.5", "0.10.0-IV1"), ("0.8.2.0", "0.8.2")),
        *(("4.0-IV0", "4.0-IV0"), ("1.0.0", "1.0-IV0")),
        *((text, None) for text in ("4.0", "3.9-IV1", "foo", "", "3", " 3.4", "0.9", "0.10")),
    ],
)
def test_levels_are_parsed_as_in_kafka(text: str, level: str | None) -> None:
    """In Kafka 3.9.1, `MetadataVersion.fromVersionString` returns the expected levels."""
    assert level_of(text) == level


def test_the_levels_below_the_bridge_release_end_with_3_3() -> None:
    below = [level for level in LEVELS if is_below_the_bridge(level)]
    assert below == list(LEVELS[: LEVELS.index(BRIDGE)])
    assert below[-1] == "3.3-IV3"


def test_an_unknown_level_is_rejected_at_start_up() -> None:
    with pytest.raises(InvalidBrokerConfigError, match="Version foo is not a valid version"):
        read_config(GOOD + "inter.broker.protocol.version=foo")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("bridgehead.envelope.supported=false", "set inter.broker.protocol.version=3.3 or lower"),
        (
            "inter.broker.protocol.version=3.3\nbridgehead.metadata.blocking=cluster",
            "needs brokers that forward",
        ),
    ],
)
def test_contradictory_levels_are_rejected(properties: str, message: str) -> None:
    """Levels from 3.4 on need Envelopes. Below 3.4, a write cannot wait for all brokers."""
    with pytest.raises(NodeConfigError, match=message):
        read_config(GOOD + properties)


def test_each_broker_follows_its_own_level() -> None:
    """The default is the newest level; forwarding can also be disabled separately."""
    assert read_config(GOOD).forwards
    assert not read_config(GOOD + "bridgehead.forwarding.enable=false").forwards
    old = read_config(GOOD + "inter.broker.protocol.version=3.3.2")
    assert (old.protocol_level, old.forwards, old.writes_directly) == ("3.3-IV3", False, True)


@pytest.mark.parametrize("is_controller", [False, True])
@pytest.mark.parametrize("dialect", ["shipped", "drafted"])
def test_a_broker_below_the_bridge_writes_directly(dialect: str, is_controller: bool) -> None:
    """Such a broker executes the APIs in WRITTEN_BY_BROKERS itself.

    Every other API has the route that it has in a broker with forwarding disabled.
    """
    for key, route in WITHOUT_DATA_PLANE[dialect].items():
        chosen = choose_route(
            key,
            0,
            dialect=dialect,
            forwarding_enabled=False,
            broker_is_controller=is_controller,
            writes_itself=True,
        )
        if key in WRITTEN_BY_BROKERS:
            assert chosen is Route.DIRECT
        elif route is Route.FORWARD and not is_controller:
            assert chosen is Route.NOT_CONTROLLER
        else:
            assert chosen is route
