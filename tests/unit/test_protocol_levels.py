"""inter.broker.protocol.version is read as Kafka 3.9.1 reads it, and decides who writes."""

from __future__ import annotations

import pytest

from broker_proxy.routing import DRAFTED, SHIPPED, Route, route
from cluster_model.broker_configs.static import InvalidBrokerConfigError
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
def test_names_of_levels_are_kafkas(text: str, level: str | None) -> None:
    """As `MetadataVersion.fromVersionString` of 3.9.1 answers."""
    assert level_of(text) == level


def test_the_bridge_is_crossed_once() -> None:
    """Everything before 3.4-IV0 writes itself, nothing from there on does."""
    below = [level for level in LEVELS if is_below_the_bridge(level)]
    assert below == list(LEVELS[: LEVELS.index(BRIDGE)])
    assert below[-1] == "3.3-IV3"


def test_a_name_that_kafka_does_not_know_is_refused_at_start() -> None:
    """In Kafka's words."""
    with pytest.raises(InvalidBrokerConfigError, match="Version foo is not a valid version"):
        read_config(GOOD + "inter.broker.protocol.version=foo")


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ("bridgehead.envelope.supported=false", "say inter.broker.protocol.version=3.3 or lower"),
        (
            "inter.broker.protocol.version=3.3\nbridgehead.metadata.blocking=cluster",
            "needs brokers that forward",
        ),
    ],
)
def test_what_no_release_was_is_refused(properties: str, says: str) -> None:
    """An old binary does not know a new level; an old level cannot wait for everybody."""
    with pytest.raises(NodeConfigError, match=says):
        read_config(GOOD + properties)


def test_each_broker_obeys_its_own_level() -> None:
    """The default is the newest; forwarding can still be switched off by itself."""
    assert read_config(GOOD).forwards
    assert not read_config(GOOD + "bridgehead.forwarding.enable=false").forwards
    old = read_config(GOOD + "inter.broker.protocol.version=3.3.2")
    assert (old.protocol_level, old.forwards, old.writes_directly) == ("3.3-IV3", False, True)


@pytest.mark.parametrize("is_controller", [False, True])
@pytest.mark.parametrize("dialect", ["shipped", "drafted"])
def test_below_the_bridge_a_broker_writes_what_brokers_wrote(
    dialect: str, is_controller: bool
) -> None:
    """Configs, ACLs, quotas and tokens; everything else is as without forwarding."""
    for key, way in (DRAFTED if dialect == "drafted" else SHIPPED).items():
        found = route(
            key,
            0,
            dialect=dialect,
            forwarding_enabled=False,
            broker_is_controller=is_controller,
            writes_itself=True,
        )
        if key in WRITTEN_BY_BROKERS:
            assert found is Route.DIRECT
        elif way is Route.FORWARD and not is_controller:
            assert found is Route.NOT_CONTROLLER
        else:
            assert found is way
