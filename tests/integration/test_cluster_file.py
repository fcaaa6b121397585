"""cluster.yaml and server.properties, as users write them, right and wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridgehead.cluster.cluster_file import load_settings
from bridgehead.cluster.errors import ClusterError


def write(folder: Path, text: str, name: str = "cluster.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    """Each option over its line of cluster.yaml; what is not given comes from the file."""
    config = write(
        tmp_path,
        "brokers: 5\nports: 7000\ncontroller: 2\n"
        "zookeeper: {members: 3, heap_mib: 256}\n"
        "properties: {num.partitions: 4, auto.create.topics.enable: true, a: file}\n"
        "nodes: {1: {broker.rack: east}, 2: {b: file}}\n",
    )
    settings = load_settings(
        tmp_path / "d", config=config, brokers=4, overrides=["a=line", "2:b=line"]
    )
    assert (settings.brokers, settings.base_port, settings.controller) == (4, 7000, 2)
    assert (settings.zookeeper_members, settings.zookeeper_heap_mib) == (3, 256)
    assert settings.properties == {
        "num.partitions": "4",
        "auto.create.topics.enable": "true",
        "a": "line",
    }
    assert settings.node_properties == {1: {"broker.rack": "east"}, 2: {"b": "line"}}
    chosen = load_settings(tmp_path / "d", config=config, ports_auto=True)
    assert chosen.ports_auto
    assert chosen.base_port is None


def test_a_server_properties_holds_for_every_broker(tmp_path: Path) -> None:
    """What it says becomes the properties of all."""
    config = write(tmp_path, "broker.id=7\nnum.partitions = 2\n", "server.properties")
    assert load_settings(tmp_path, config=config).properties["num.partitions"] == "2"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("brokrs: 3", "brokrs"),
        ("brokers: three", "brokers"),
        ("brokers: 0", "brokers"),
        ("ports: free", "ports"),
        ("zookeeper: {members: 2}", "zookeeper.members"),
        ("properties: {a: [1]}", "properties.a"),
        ("- 1", "keys"),
        ("a: [", "no YAML"),
        ("controller: 9", "Broker 9"),
    ],
)
def test_a_wrong_file_is_one_sentence_that_names_the_place(
    tmp_path: Path, text: str, named: str
) -> None:
    """The file and the key stand in it, no stack trace."""
    with pytest.raises(ClusterError, match=named) as refusal:
        load_settings(tmp_path / "d", config=write(tmp_path, text))
    assert "\n" not in str(refusal.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """With the reason."""
    with pytest.raises(ClusterError, match=r"absent\.yaml cannot be read: No such file"):
        load_settings(tmp_path, config=tmp_path / "absent.yaml")
