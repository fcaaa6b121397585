"""HTTP/1.1 on a control socket, for fault rules: one request per connection.

    GET    /faults         the rules with their counts
    POST   /faults         add the rule in the body
    DELETE /faults         remove all rules
    DELETE /faults/NAME    remove one rule

A request for an unknown resource gets status 404, any other failed request 400. The body is then
`{"error": ...}`, as in the protocol of JSON lines.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, Final
from urllib.parse import unquote

_REQUEST: Final = re.compile(rb"(GET|POST|DELETE) (/\S*) HTTP/1\.[01]\r?\n")
_LENGTH: Final = re.compile(rb"(?i)content-length:\s*(\d{1,9})\s*")
_BODY_BYTES_MAX: Final = 1 << 16
_HEADERS_MAX: Final = 100
_PATH: Final = "/faults"


def is_http(line: bytes) -> bool:
    """Return whether the first line of a connection is HTTP."""
    return _REQUEST.fullmatch(line) is not None


async def read_command(line: bytes, reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """Read the rest of a request; return its command, or None if the resource does not exist.

    Raises:
        ValueError: the request is malformed.
    """
    match = _REQUEST.fullmatch(line)
    assert match is not None
    length = 0
    for _ in range(_HEADERS_MAX):
        header = await reader.readline()
        if not header.strip():
            break
        if size := _LENGTH.fullmatch(header):
            length = int(size[1])
    if length > _BODY_BYTES_MAX:
        raise ValueError(f"the body is larger than {_BODY_BYTES_MAX} bytes")
    body = await reader.readexactly(length)
    method, path = match[1].decode(), unquote(match[2].decode())
    match method, path.rstrip("/"):
        case "GET", "/faults":
            return {"command": "faults_list"}
        case "POST", "/faults":
            return {"command": "faults_add", "rule": json.loads(body)}
        case "DELETE", "/faults":
            return {"command": "faults_remove"}
        case "DELETE", named if named.startswith(f"{_PATH}/"):
            return {"command": "faults_remove", "name": named.removeprefix(f"{_PATH}/")}
    return None


def response(document: dict[str, Any] | None) -> bytes:
    """Return the HTTP response for an answer; None means that the resource does not exist."""
    status = "404 Not Found" if document is None else "200 OK"
    if document is not None and "error" in document:
        status = "400 Bad Request"
    body = json.dumps(document or {"error": "The only resource is /faults."}).encode() + b"\n"
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
