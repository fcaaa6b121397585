"""The unix socket that controls a supervisor or a node: one JSON object per line, both ways.

The same commands can be sent over HTTP, on the same socket or on a TCP port (`control_api`).

The path of a unix socket has at most 107 bytes (103 on macOS). Paths in a data directory may be
longer; the sockets are then bound and connected through a short symbolic link. They have mode 0600,
because anyone who can write to one controls the cluster.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Handler = Callable[[Message], Awaitable[Message]]

LINE_BYTES_MAX = 1 << 20
_RESPONSE_MAX = 1 << 28  # metadata of a large cluster
_ADDRESS_BYTES_MAX = 100


class ControlError(Exception):
    """The other side did not answer, or answered with an error."""


@contextmanager
def short_address(path: Path) -> Iterator[str]:
    """Yield a name for `path` that fits into a socket address, valid inside the context."""
    if len(os.fsencode(path)) <= _ADDRESS_BYTES_MAX:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="bh-") as folder:
        link = Path(folder) / "d"
        link.symlink_to(path.parent.resolve(), target_is_directory=True)
        yield str(link / path.name)


def listen(path: Path) -> socket.socket:
    """Return a listening socket at `path`, mode 0600; replace a socket that is already there.

    Raises:
        OSError: the folder cannot be written.
    """
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        with short_address(path) as address:
            server.bind(address)
    except OSError:
        server.close()
        raise
    finally:
        os.umask(mask)
    server.setblocking(False)
    server.listen()
    return server


async def serve(path: Path, handler: Handler) -> asyncio.Server:
    """Answer every line at `path` with the result of `handler` until the server is closed.

    If `handler` raises ControlError, the answer is `{"error": ...}`.
    """
    listening = listen(path)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # `readline` raises ValueError if a line is longer than the limit; this ends the connection.
        with suppress(ConnectionError, ValueError, EOFError):
            while line := await reader.readline():
                if line.rstrip().endswith((b"HTTP/1.0", b"HTTP/1.1")):
                    from bridgehead.control_api import http  # few connections need it

                    await http.response_to(reader, writer, _without_errors(handler), received=line)
                    return
                writer.write(_encode(await _respond(line, handler)))
                await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    return await asyncio.start_unix_server(connected, sock=listening, limit=LINE_BYTES_MAX)


async def _respond(line: bytes, handler: Handler) -> Message:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {"error": "A command is one JSON object on one line."}
    if not isinstance(message, dict):
        return {"error": "A command is one JSON object on one line."}
    return await _without_errors(handler)(message)


def _without_errors(handler: Handler) -> Handler:
    """Return a handler that returns `{"error": ...}` where `handler` raises ControlError."""

    async def handle(message: Message) -> Message:
        try:
            return await handler(message)
        except ControlError as error:
            return {"error": str(error)}

    return handle


async def serve_http(host: str, port: int, token: str, handler: Handler) -> asyncio.Server:
    """Serve the operations of `control_api` at a TCP port to those who have the token.

    Raises:
        OSError: the port cannot be opened.
    """
    from bridgehead.control_api.http import Connections

    return await asyncio.start_server(Connections(token, _without_errors(handler)), host, port)


def call(path: Path, message: Message, *, timeout_s: float = 10.0) -> Message:
    """Send `message` to the process at `path` and return its answer; blocks.

    Raises:
        ControlError: nothing listens there, a part of the exchange takes longer than `timeout_s`,
            or the answer is an error.
    """
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(timeout_s)
    try:
        with short_address(path) as address:
            client.connect(address)
        client.sendall(_encode(message))
        with client.makefile("rb") as lines:
            line = lines.readline()
    except OSError as error:
        raise ControlError(f"No answer from {path}: {_reason(error)}") from error
    finally:
        client.close()
    return _decode(path, line)


async def call_async(path: Path, message: Message, *, timeout_s: float = 10.0) -> Message:
    """Like `call`, on the event loop."""
    try:
        async with asyncio.timeout(timeout_s):
            with short_address(path) as address:
                reader, writer = await asyncio.open_unix_connection(address, limit=_RESPONSE_MAX)
            try:
                writer.write(_encode(message))
                line = await reader.readline()
            finally:
                writer.close()
    except (OSError, ValueError) as error:  # a timeout is an OSError too
        raise ControlError(f"No answer from {path}: {_reason(error)}") from error
    return _decode(path, line)


def _encode(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _decode(path: Path, line: bytes) -> Message:
    if not line.endswith(b"\n"):
        raise ControlError(f"No answer from {path}: the connection was closed")
    response = json.loads(line)
    if not isinstance(response, dict):
        raise ControlError(f"{path} did not answer with a JSON object")
    if "error" in response:
        raise ControlError(str(response["error"]))
    return response


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
