"""The control socket of supervisors and nodes."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any

import pytest

from bridgehead.cluster.cluster_file import load_settings
from bridgehead.cluster.control_socket import (
    LINE_BYTES_MAX,
    ControlError,
    call,
    call_async,
    serve,
)
from bridgehead.cluster.errors import ClusterError


async def respond(message: dict[str, Any]) -> dict[str, Any]:
    if message.get("command") == "refuse":
        raise ControlError("It will not.")
    if message.get("command") == "wait":
        await asyncio.sleep(60)
    return {"received": message}


@pytest.mark.parametrize("depth", [1, 12])
async def test_socket_path_may_exceed_the_address_limit(tmp_path: Path, depth: int) -> None:
    """Linux limits the address of a socket to 108 bytes. The socket file has mode 0600."""
    folder = tmp_path.joinpath(*["a-folder-with-a-long-name"] * depth)
    folder.mkdir(parents=True)
    path = folder / "control.sock"
    async with await serve(path, respond):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert await call_async(path, {"a": 1}) == {"received": {"a": 1}}
        assert await asyncio.to_thread(call, path, {"b": 2}) == {"received": {"b": 2}}


async def test_errors_and_malformed_lines_get_a_response(tmp_path: Path) -> None:
    """After malformed lines the connection still serves a valid one."""
    path = tmp_path / "control.sock"
    async with await serve(path, respond):
        with pytest.raises(ControlError, match="It will not"):
            await call_async(path, {"command": "refuse"})
        reader, writer = await asyncio.open_unix_connection(str(path))
        for line in (b"nonsense\n", b"[1]\n", b'{"a": 1}\n'):
            writer.write(line)
        assert b"one JSON object" in await reader.readline()
        assert b"one JSON object" in await reader.readline()
        assert b"received" in await reader.readline()
        writer.close()


async def test_a_response_may_be_larger_than_a_request(tmp_path: Path) -> None:
    """A node's metadata is one answer."""
    large = "x" * (LINE_BYTES_MAX * 2)

    async def describe(message: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": large}

    path = tmp_path / "control.sock"
    async with await serve(path, describe):
        assert await call_async(path, {}) == {"metadata": large}
        assert await asyncio.to_thread(call, path, {}) == {"metadata": large}


async def test_a_missing_socket_and_a_timeout_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with pytest.raises(ControlError, match="No answer"):
        call(path, {})
    async with await serve(path, respond):
        with pytest.raises(ControlError, match="No answer"):
            await call_async(path, {"command": "wait"}, timeout_s=0.1)
        with pytest.raises(ControlError, match="No answer"):
            await asyncio.to_thread(call, path, {"command": "wait"}, timeout_s=0.1)


async def test_socket_of_a_dead_process_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    path.write_text("")
    async with await serve(path, respond):
        assert await call_async(path, {}) == {"received": {}}


# Valid and invalid cluster.yaml and server.properties files.


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
