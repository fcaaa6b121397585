"""What a cluster is asked to be: overrides, contradictions, and the way to the supervisor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridgehead.cluster.cluster_file import load_settings
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.settings import (
    ClusterSettings,
    parse_overrides,
    settings_from_json,
    settings_to_json,
)

FOLDER = Path("/nowhere/cluster")


def test_an_override_is_for_all_brokers_or_for_one() -> None:
    """`ID:` before the key makes it one broker's own; colons elsewhere are part of the value."""
    shared, own = parse_overrides(["a=1", "2:a=2", "listeners=PLAINTEXT://h:1", "3:b=x=y"])
    assert shared == {"a": "1", "listeners": "PLAINTEXT://h:1"}
    assert own == {2: {"a": "2"}, 3: {"b": "x=y"}}


@pytest.mark.parametrize("override", ["a", "=1", "2:=1", "", "2:a"])
def test_an_override_without_key_or_value_is_refused(override: str) -> None:
    """The sentence shows what was typed and what is wanted."""
    with pytest.raises(ClusterError, match="not of the form"):
        parse_overrides([override])


def test_a_broker_that_the_cluster_does_not_have_cannot_be_named() -> None:
    """Neither as controller nor in an override."""
    with pytest.raises(ClusterError, match="Broker 4 is named"):
        load_settings(FOLDER, brokers=3, controller=4)
    with pytest.raises(ClusterError, match="Broker 9 is named"):
        load_settings(FOLDER, overrides=["9:a=1"])


def test_base_port_and_free_ports_contradict_each_other() -> None:
    """A user who gives both must choose."""
    with pytest.raises(ClusterError, match="contradict"):
        load_settings(FOLDER, base_port=9092, ports_auto=True)


def test_settings_survive_the_way_to_the_supervisor() -> None:
    """They travel as one line of JSON."""
    settings = ClusterSettings(
        data_dir=FOLDER,
        brokers=2,
        base_port=1234,
        controller=2,
        zookeeper_connect="h:1/c",
        properties={"a": "1"},
        node_properties={2: {"b": "2"}},
        node_command=("x", "y"),
    )
    assert settings_from_json(json.loads(json.dumps(settings_to_json(settings)))) == settings
