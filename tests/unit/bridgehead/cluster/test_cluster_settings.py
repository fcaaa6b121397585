"""A cluster's settings: overrides, contradictory options, and conversion to and from JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridgehead.cluster.cluster_file import load_settings, migration_overrides
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.settings import (
    ClusterSettings,
    check_settings,
    parse_overrides,
    settings_from_json,
    settings_to_json,
)

FOLDER = Path("/nowhere/cluster")


def test_override_applies_to_all_brokers_or_one() -> None:
    """`ID:` before the key selects one broker; other colons belong to the value."""
    shared, of_broker = parse_overrides(["a=1", "2:a=2", "listeners=PLAINTEXT://h:1", "3:b=x=y"])
    assert shared == {"a": "1", "listeners": "PLAINTEXT://h:1"}
    assert of_broker == {2: {"a": "2"}, 3: {"b": "x=y"}}


@pytest.mark.parametrize("override", ["a", "=1", "2:=1", "", "2:a"])
def test_malformed_override_is_rejected(override: str) -> None:
    with pytest.raises(ClusterError, match="not of the form"):
        parse_overrides([override])


@pytest.mark.parametrize("override", ["broker.id=7", "2:broker.id=7", "zookeeper.connect=z:2181"])
def test_an_override_of_a_property_that_up_chooses_is_rejected(override: str) -> None:
    with pytest.raises(ClusterError, match="--override cannot set"):
        parse_overrides([override])


@pytest.mark.parametrize("name", ["broker.id", "zookeeper.connect"])
def test_a_broker_in_the_file_cannot_set_a_property_that_up_chooses(
    name: str, tmp_path: Path
) -> None:
    config = tmp_path / "cluster.yaml"
    config.write_text(f"nodes: {{2: {{{name}: '7'}}}}")
    with pytest.raises(ClusterError, match=rf"cluster.yaml: `nodes.2` cannot set `{name}`"):
        load_settings(FOLDER, config=config)


def test_a_program_cannot_set_the_id_of_a_broker() -> None:
    settings = ClusterSettings(data_dir=FOLDER, brokers=2, node_properties={2: {"broker.id": "7"}})
    with pytest.raises(ClusterError, match=r"broker 2 cannot set `broker\.id`"):
        check_settings(settings)


def test_a_program_can_connect_one_broker_to_a_proxy_of_zookeeper() -> None:
    check_settings(
        ClusterSettings(
            data_dir=FOLDER, brokers=2, node_properties={2: {"zookeeper.connect": "127.0.0.1:7"}}
        )
    )


def test_unknown_broker_is_rejected() -> None:
    with pytest.raises(ClusterError, match="There is no broker 4"):
        load_settings(FOLDER, brokers=3, controller=4)
    with pytest.raises(ClusterError, match="There is no broker 9"):
        load_settings(FOLDER, overrides=["9:a=1"])


def test_base_port_and_free_ports_exclude_each_other() -> None:
    with pytest.raises(ClusterError, match="exclude each other"):
        load_settings(FOLDER, base_port=9092, ports_auto=True)


def test_settings_survive_json() -> None:
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


def test_migrate_stands_for_kafkas_properties() -> None:
    """An override takes precedence, for example another name of the controllers' listener."""
    voters = "3001@127.0.0.1:9700,3002@127.0.0.1:9701"
    overrides = (*migration_overrides(voters), "controller.listener.names=QUORUM")
    assert load_settings(FOLDER, overrides=overrides).properties == {
        "zookeeper.metadata.migration.enable": "true",
        "controller.quorum.voters": voters,
        "controller.listener.names": "QUORUM",
    }
    assert migration_overrides(None) == ()
