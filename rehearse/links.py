"""TCP relays on loopback that can hold bytes back: the fault `cut` of a rehearsal.

A cut is as if packets were lost: both ends stay connected and get nothing. The bytes arrive when it
ends, unless one end has closed the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from bridgehead.cluster.ports import LOOPBACK

_CHUNK_BYTES: Final = 1 << 16


class Link:
    """A relay from one port to another."""

    def __init__(self, port: int, upstream_port: int) -> None:
        self.port = port
        self._upstream_port = upstream_port
        self._whole = asyncio.Event()
        self._whole.set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._accepted, LOOPBACK, self.port)

    def stop(self) -> None:
        """Close the listener and all connections. May be called twice."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()

    def cut(self) -> None:
        """Hold back what both ends send, also on new connections."""
        self._whole.clear()

    def mend(self) -> None:
        """Let the bytes through again."""
        self._whole.set()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._relay(reader, writer)
        except* (OSError, EOFError):
            pass  # one end is gone, so the other one must be, too
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_upstream, to_upstream = await asyncio.open_connection(LOOPBACK, self._upstream_port)
        with contextlib.closing(to_upstream.transport):
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, to_upstream))
                group.create_task(self._pump(from_upstream, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward bytes until an end closes the connection; then raise EOFError or OSError."""
        while data := await reader.read(_CHUNK_BYTES):
            await self._whole.wait()
            writer.write(data)
            await writer.drain()
        raise EOFError
