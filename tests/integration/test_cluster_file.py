"""Valid and invalid cluster.yaml and server.properties files."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridgehead.cluster.cluster_file import load_settings
from bridgehead.cluster.errors import ClusterError


def write(folder: Path, text: str, name: str = "cluster.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_options_take_precedence_over_the_file(tmp_path: Path) -> None:
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


def test_server_properties_apply_to_every_broker(tmp_path: Path) -> None:
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
        ("a: [", "not YAML"),
        ("controller: 9", "no broker 9"),
    ],
)
def test_invalid_file_fails_with_one_line_that_names_the_fault(
    tmp_path: Path, text: str, named: str
) -> None:
    with pytest.raises(ClusterError, match=named) as caught:
        load_settings(tmp_path / "d", config=write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"absent\.yaml cannot be read: No such file"):
        load_settings(tmp_path, config=tmp_path / "absent.yaml")
