"""GET /metrics and GET /health over HTTP.

Each connection serves one request. The request's size is limited, and so is the time in which the
client sends it and reads the response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

_HEAD_BYTES_MAX: Final = 8 * 1024
_READ_TIMEOUT_S: Final = 5.0
_WRITE_TIMEOUT_S: Final = 30.0


class MetricsServer:
    """The HTTP server; `port` is the bound port."""

    def __init__(self, registry: CollectorRegistry, health: Callable[[], tuple[bool, str]]) -> None:
        """`health` returns whether the node is healthy, and one line that explains why."""
        self._registry = registry
        self._health = health
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen. Port 0 selects a free port. Raises OSError if the port is in use."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=_HEAD_BYTES_MAX)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_READ_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(self._respond(head))
            writer.close()
            async with asyncio.timeout(_WRITE_TIMEOUT_S):
                await writer.wait_closed()
        except (
            TimeoutError,
            ConnectionError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
        ):
            pass  # The peer was too slow, did not speak HTTP, or disconnected.
        finally:
            writer.transport.abort()  # Has no effect if everything was sent.

    def _respond(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.split(b" ", 1)[0].split(b"?", 1)[0]
        if method != b"GET":
            return _response(405, "Method Not Allowed", b"only GET is served\n")
        if path == b"/metrics":
            return _response(200, "OK", generate_latest(self._registry), CONTENT_TYPE_LATEST)
        if path == b"/health":
            healthy, reason = self._health()
            body = f"{reason}\n".encode()
            return _response(200, "OK", body) if healthy else _response(503, "Unavailable", body)
        return _response(404, "Not Found", b"try /metrics or /health\n")


def _response(
    status: int, reason: str, body: bytes, content_type: str = "text/plain; charset=utf-8"
) -> bytes:
    head = (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
