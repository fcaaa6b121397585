"""The control socket of supervisors and nodes."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any

import pytest

from bridgehead.cluster.control_socket import (
    LINE_BYTES_MAX,
    ControlError,
    call,
    call_async,
    serve,
)


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
