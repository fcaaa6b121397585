"""HTTP/1.1 for the operations of `operations`: one request per connection.

The same code serves a unix socket, which only its owner can open, and a TCP port, where each
request needs the token. An error is a JSON object with one sentence, `{"error": ...}`.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import h11

from bridgehead.control_api.openapi import openapi_document
from bridgehead.control_api.operations import (
    BY_PATH,
    FieldError,
    Operation,
    from_query,
    to_message,
)

_log = logging.getLogger(__name__)
Message = dict[str, Any]
Execute = Callable[[Message], Awaitable[Message]]
"""Executes a message; a failure is a result with the member `error`."""

BODY_BYTES_MAX: Final = 1 << 16
CONNECTIONS_MAX: Final = 64
_HEAD_BYTES_MAX: Final = 1 << 14
_PART_BYTES: Final = 1 << 14
_REQUEST_TIMEOUT_S: Final = 10.0
_LINGER_S: Final = 1.0
_UNAUTHORIZED: Final = (
    "The token is missing or wrong: send the header `Authorization: Bearer TOKEN`. TOKEN is in the "
    "file control.token of the cluster's folder; BRIDGEHEAD_CONTROL_TOKEN sets it."
)


class _RejectedError(Exception):
    """A request that is not executed."""

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, headers or {}


class Connections:
    """The connections of one TCP port: each request needs `token`, and their number is limited."""

    def __init__(self, token: str, execute: Execute) -> None:
        self._token, self._execute = token, execute
        self._open = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the request of a new connection, and close the connection."""
        self._open += 1
        try:
            is_full = self._open > CONNECTIONS_MAX
            await response_to(reader, writer, None if is_full else self._execute, token=self._token)
        finally:
            self._open -= 1


async def response_to(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    execute: Execute | None,
    *,
    token: str | None = None,
    received: bytes = b"",
) -> None:
    """Answer one request and close the connection.

    `received` is the part of the request that was already read. Without `token` every request is
    allowed. Without `execute` the request is rejected, because there are too many.
    """
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES_MAX)
    try:
        try:
            operation, message = await _read(reader, connection, execute, token, received)
            result = (
                openapi_document() if operation.path == "/openapi" else await _run(execute, message)
            )
        except _RejectedError as rejected:
            sentence = str(rejected)
            body = {"error": sentence} if sentence else None
            await _respond(writer, connection, rejected.status, body, rejected.headers)
        else:
            await _respond_result(writer, connection, operation, result)
        if reader.at_eof():
            return
        # A connection that is closed with unread data is reset, and the client loses the response.
        with suppress(TimeoutError, OSError):
            writer.write_eof()
            async with asyncio.timeout(_LINGER_S):
                while await reader.read(_PART_BYTES):
                    pass
    except OSError:  # the client has closed the connection
        pass
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _run(execute: Execute | None, message: Message) -> Message:
    assert execute is not None
    try:
        return await execute(message)
    except Exception as error:  # A bug must not end the cluster; its text may be secret.
        _log.exception("%s failed", message.get("command"))
        name = type(error).__name__
        raise _RejectedError(
            500, f"Unexpected {name}: the supervisor's output has more."
        ) from error


async def _read(
    reader: asyncio.StreamReader,
    connection: h11.Connection,
    execute: Execute | None,
    token: str | None,
    received: bytes,
) -> tuple[Operation, Message]:
    """Read one request; return its operation and message.

    Raises:
        _RejectedError: the request is malformed, too large, late or not allowed.
    """
    try:
        async with asyncio.timeout(_REQUEST_TIMEOUT_S):
            head, body = await _read_request(reader, connection, received)
    except TimeoutError:
        raise _RejectedError(
            408, f"The request did not arrive within {_REQUEST_TIMEOUT_S:g} s."
        ) from None
    except h11.RemoteProtocolError as error:
        raise _RejectedError(error.error_status_hint, f"This is not HTTP/1.1: {error}.") from None
    if head.method == b"HEAD":  # whose responses have no body
        raise _RejectedError(405, "", {"Allow": "GET, POST"})
    if execute is None:
        raise _RejectedError(503, f"More than {CONNECTIONS_MAX} connections are open: try again.")
    url = urlsplit(head.target.decode("ascii", "replace"))
    operation = BY_PATH.get(url.path)
    if not (operation is not None and operation.is_public) and not _is_allowed(head, token):
        raise _RejectedError(401, _UNAUTHORIZED, {"WWW-Authenticate": "Bearer"})
    if operation is None:
        raise _RejectedError(
            404, f"There is no operation {url.path[:80]}: GET /openapi lists the operations."
        )
    if head.method.decode() != operation.method:
        raise _RejectedError(
            405, f"{operation.path} has the method {operation.method}.", {"Allow": operation.method}
        )
    try:
        fields = (
            from_query(operation, dict(parse_qsl(url.query, keep_blank_values=True)))
            if operation.method == "GET"
            else _parse(body)
        )
        return operation, to_message(operation, fields)
    except FieldError as wrong:
        raise _RejectedError(400, str(wrong)) from None


async def _read_request(
    reader: asyncio.StreamReader, connection: h11.Connection, received: bytes
) -> tuple[h11.Request, bytes]:
    head: h11.Request | None = None
    body = bytearray()
    if received:
        connection.receive_data(received)
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_PART_BYTES))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > BODY_BYTES_MAX:
                raise _RejectedError(413, f"The body is larger than {BODY_BYTES_MAX} bytes.")
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            return head, bytes(body)
        else:  # the connection was closed before a request
            raise ConnectionResetError


def _is_allowed(head: h11.Request, token: str | None) -> bool:
    if token is None:
        return True
    sent = dict(head.headers).get(b"authorization", b"")
    return hmac.compare_digest(sent, b"Bearer " + token.encode())


def _parse(body: bytes) -> Message:
    try:
        document = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise FieldError("The body is one JSON object.")
    return document


async def _respond_result(
    writer: asyncio.StreamWriter,
    connection: h11.Connection,
    operation: Operation,
    result: Message,
) -> None:
    if operation.is_file and "error" not in result:
        await _send_file(writer, connection, Path(result["file"]))
        return
    status = 503 if result.get("ready") is False else 409 if "error" in result else 200
    await _respond(writer, connection, status, result, {})


async def _respond(
    writer: asyncio.StreamWriter,
    connection: h11.Connection,
    status: int,
    result: Message | None,
    headers: dict[str, str],
) -> None:
    body = b"" if result is None else json.dumps(result).encode() + b"\n"
    _write_head(writer, connection, status, "application/json", len(body), headers)
    if body:
        writer.write(connection.send(h11.Data(body)) or b"")
    writer.write(connection.send(h11.EndOfMessage()) or b"")
    await writer.drain()


async def _send_file(writer: asyncio.StreamWriter, connection: h11.Connection, path: Path) -> None:
    """Send a file and delete it."""
    with path.open("rb") as file:
        path.unlink()  # noqa: ASYNC240 - as fast as any system call
        length = file.seek(0, 2)
        file.seek(0)
        _write_head(writer, connection, 200, "application/gzip", length, {})
        while part := await asyncio.to_thread(file.read, _PART_BYTES):
            writer.write(connection.send(h11.Data(part)) or b"")
            await writer.drain()
    writer.write(connection.send(h11.EndOfMessage()) or b"")
    await writer.drain()


def _write_head(
    writer: asyncio.StreamWriter,
    connection: h11.Connection,
    status: int,
    content_type: str,
    length: int,
    headers: dict[str, str],
) -> None:
    fields = {
        "Content-Type": content_type,
        "Content-Length": str(length),
        "Connection": "close",
        "Cache-Control": "no-store",
        **headers,
    }
    head = h11.Response(
        status_code=status, reason=HTTPStatus(status).phrase, headers=list(fields.items())
    )
    writer.write(connection.send(head) or b"")
