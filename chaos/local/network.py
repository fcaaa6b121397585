"""Our TCP proxies between nodes, and between nodes and ZooKeeper.

Each broker has a proxy for each member of ZooKeeper, and one through which the other brokers
connect to its gRPC listener. A cut holds bytes back, as if packets were lost. The bytes arrive once
the cut has ended, unless one end has closed the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from bridgehead.cluster.ports import LOOPBACK, Ports
from chaos.player import NoProgressError

_CHUNK_BYTES: Final = 1 << 16
_MULTI: Final = 14
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST
_HTTP2_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_FRAME_HEADER_BYTES: Final = 9  # the length in 3 bytes, the type, flags, and the stream's id
_DATA_FRAME: Final = 0
_MESSAGE_PREFIX_BYTES: Final = 5  # gRPC's prefix of each message
_TLS_HEADER_BYTES: Final = 5  # the type, the version, and the length in 2 bytes
# A heartbeat with its HTTP/2 frames takes at most 100 bytes, a record with an Envelope about 200.
_HEARTBEAT_BYTES_MAX: Final = 150
_OPENING: Final = 10  # The first reads may be handshakes of TLS and HTTP/2, not Envelopes.
_ENVELOPE_WITHIN_S: Final = 60.0
_COMMIT_WITHIN_S: Final = 60.0
_CLIENT_PORT: Final = re.compile(r"^clientPort=(\d+)$", re.MULTILINE)


async def _envelope_arrived(event: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(event.wait(), _ENVELOPE_WITHIN_S)
    except TimeoutError:
        message = f"no Envelope was sent within {_ENVELOPE_WITHIN_S:.0f} s"
        raise NoProgressError(message) from None


class Proxy:
    """A TCP proxy on a free port of loopback.

    `upstream` returns the server's port. It is called for each client, because the server may start
    after the proxy.
    """

    def __init__(self, upstream: Callable[[], int]) -> None:
        self._upstream = upstream
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.requests, self.replies = asyncio.Event(), asyncio.Event()
        self._delay_s = 0.0
        self._reset: asyncio.Event | None = None
        self.requests.set()
        self.replies.set()

    async def start(self) -> int:
        """Listen; return the port."""
        self._server = await asyncio.start_server(self._accepted, LOOPBACK, 0)
        return int(self._server.sockets[0].getsockname()[1])

    def stop(self) -> None:
        """Close the listener and all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()

    @contextlib.contextmanager
    def cut(self, *, requests: bool = True, replies: bool = True) -> Iterator[None]:
        """Hold back what clients send (`requests`), what the server sends (`replies`), or both."""
        gates = [gate for gate, on in ((self.requests, requests), (self.replies, replies)) if on]
        for gate in gates:
            gate.clear()
        try:
            yield
        finally:
            for gate in gates:
                gate.set()

    @contextlib.contextmanager
    def slow(self, seconds: float) -> Iterator[None]:
        """Delay the bytes that clients send."""
        self._delay_s = seconds
        try:
            yield
        finally:
            self._delay_s = 0.0

    async def reset(self) -> None:
        """Reset every connection when the next Envelope arrives; return after that."""
        self._reset = asyncio.Event()
        await _envelope_arrived(self._reset)

    def _reset_all(self) -> None:
        for writer in list(self._writers):
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = {writer}
        self._writers.add(writer)
        try:
            server = await asyncio.open_connection(LOOPBACK, self._upstream())
            writers.add(server[1])
            self._writers.add(server[1])
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, server[1], self.requests, True))
                group.create_task(self._pump(server[0], writer, self.replies, False))
        except* (OSError, EOFError):
            pass
        finally:
            self._writers -= writers
            for open_writer in writers:
                open_writer.transport.abort()

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        gate: asyncio.Event,
        is_request: bool,
    ) -> None:
        """Forward bytes until one end closes the connection; then raise EOFError or OSError."""
        for number in itertools.count():
            data = await self._read(reader, is_request)
            is_envelope = is_request and number > _OPENING and len(data) > _HEARTBEAT_BYTES_MAX
            if is_envelope and self._reset is not None:
                self._reset.set()
                self._reset = None
                self._reset_all()
            if is_request and self._delay_s:
                await asyncio.sleep(self._delay_s)
            await gate.wait()
            writer.write(data)
            await writer.drain()

    async def _read(self, reader: asyncio.StreamReader, _is_request: bool) -> bytes:
        data = await reader.read(_CHUNK_BYTES)
        if not data:
            raise EOFError
        return data


class ZooKeeperProxy(Proxy):
    """A proxy that reads ZooKeeper's frames, and can lose one multi or its reply."""

    def __init__(self, upstream: Callable[[], int]) -> None:
        super().__init__(upstream)
        self._loses: str | None = None
        self._lost: asyncio.Event | None = None
        self._lost_xid: int | None = None
        self._first: set[asyncio.StreamReader] = set()

    def lose(self, what: str, lost: asyncio.Event) -> None:
        """Lose the next multi, or its reply, and disconnect. `what` is `request` or `reply`."""
        self._loses, self._lost = what, lost

    def disarm(self) -> None:
        """Lose nothing more."""
        self._loses = None

    async def _read(self, reader: asyncio.StreamReader, is_request: bool) -> bytes:
        size = await reader.readexactly(4)
        data = await reader.readexactly(int.from_bytes(size, "big"))
        if reader in self._first:  # The first frame opens the session and has no header.
            (xid,) = struct.unpack_from(">i", data)
            if is_request:
                self._lose_request(xid, data)
            elif xid == self._lost_xid:
                self._lost_xid = None
                self._disconnect()
        self._first.add(reader)
        return size + data

    def _lose_request(self, xid: int, data: bytes) -> None:
        (kind,) = struct.unpack_from(">i", data, 4)
        if self._loses is None or kind != _MULTI:
            return
        is_reply, self._loses = self._loses == "reply", None
        if is_reply:
            self._lost_xid = xid
        else:
            self._disconnect()

    def _disconnect(self) -> None:
        assert self._lost is not None
        self._lost.set()
        raise ConnectionResetError


class EnvelopeProxy(Proxy):
    """A proxy that reads HTTP/2 frames or TLS records, and can overwrite one Envelope.

    The new bytes are not a valid protobuf message. The frames around them stay intact. In a
    connection with TLS, the proxy cannot overwrite an Envelope; it only sees the length of records.
    """

    def __init__(self, upstream: Callable[[], int]) -> None:
        super().__init__(upstream)
        self._corrupted: asyncio.Event | None = None
        self._is_plain: dict[asyncio.StreamReader, bool] = {}

    async def corrupt(self) -> None:
        """Overwrite the next Envelope; return after that."""
        self._corrupted = asyncio.Event()
        await _envelope_arrived(self._corrupted)

    async def _read(self, reader: asyncio.StreamReader, is_request: bool) -> bytes:
        if not is_request:
            return await super()._read(reader, is_request)
        if reader not in self._is_plain:
            first = await reader.readexactly(len(_HTTP2_PREFACE))
            self._is_plain[reader] = first == _HTTP2_PREFACE
            if self._is_plain[reader]:
                return first
            missing = _TLS_HEADER_BYTES + _tls_length(first) - len(first)
            return first + await reader.readexactly(missing)
        if not self._is_plain[reader]:
            header = await reader.readexactly(_TLS_HEADER_BYTES)
            return header + await reader.readexactly(_tls_length(header))
        header = await reader.readexactly(_FRAME_HEADER_BYTES)
        payload = await reader.readexactly(int.from_bytes(header[:3], "big"))
        is_envelope = header[3] == _DATA_FRAME and len(payload) > _HEARTBEAT_BYTES_MAX
        if is_envelope and self._corrupted is not None:
            self._corrupted.set()
            self._corrupted = None
            kept = payload[:_MESSAGE_PREFIX_BYTES]
            payload = kept + b"\xff" * (len(payload) - len(kept))
        return header + payload


def _tls_length(record: bytes) -> int:
    return int.from_bytes(record[3:_TLS_HEADER_BYTES], "big")


class ProxiedNetwork:
    """The proxies of one cluster, and the faults of its links."""

    def __init__(self, data_dir: Path, brokers: tuple[int, ...], members: tuple[int, ...]) -> None:
        self._data_dir = data_dir
        self._members = members
        self._ports = Ports()
        self._grpc = {broker: self._ports.choose() for broker in brokers}
        self._peers = {
            broker: EnvelopeProxy(lambda port=port: port)  # type: ignore[misc]
            for broker, port in self._grpc.items()
        }
        self._zookeeper = {
            broker: [ZooKeeperProxy(lambda m=member: self._client_port(m)) for member in members]  # type: ignore[misc]
            for broker in brokers
        }

    async def start(self) -> dict[int, dict[str, str]]:
        """Listen; return the properties with which the nodes use the proxies."""
        properties = {}
        for broker, proxy in self._peers.items():
            ports = [await member.start() for member in self._zookeeper[broker]]
            properties[broker] = {
                "bridgehead.grpc.listener": f"{LOOPBACK}:{self._grpc[broker]}",
                "bridgehead.grpc.advertised.listener": f"{LOOPBACK}:{await proxy.start()}",
                "zookeeper.connect": ",".join(f"{LOOPBACK}:{port}" for port in ports),
            }
        return properties

    def stop(self) -> None:
        """Close everything."""
        for proxy in (
            *self._peers.values(),
            *itertools.chain.from_iterable(self._zookeeper.values()),
        ):
            proxy.stop()
        self._ports.close()

    def _client_port(self, member: int) -> int:
        folder = self._data_dir / "zookeeper"
        if len(self._members) > 1:
            folder /= str(member)
        match = _CLIENT_PORT.search((folder / "zoo.cfg").read_text())
        assert match is not None
        return int(match[1])

    @contextlib.contextmanager
    def cut_from_zookeeper(self, broker: int) -> Iterator[None]:
        with contextlib.ExitStack() as cuts:
            for proxy in self._zookeeper[broker]:
                cuts.enter_context(proxy.cut())
            yield

    def cut_from_peers(
        self, broker: int, *, requests: bool, replies: bool
    ) -> contextlib.AbstractContextManager[None]:
        return self._peers[broker].cut(requests=requests, replies=replies)

    def slow_peers(self, broker: int, seconds: float) -> contextlib.AbstractContextManager[None]:
        return self._peers[broker].slow(seconds)

    async def reset_peers(self, broker: int) -> None:
        await self._peers[broker].reset()

    async def corrupt_envelope(self, broker: int) -> None:
        await self._peers[broker].corrupt()

    async def lose_commit(self, broker: int, *, reply: bool) -> None:
        lost = asyncio.Event()
        for proxy in self._zookeeper[broker]:
            proxy.lose("reply" if reply else "request", lost)
        try:
            await asyncio.wait_for(lost.wait(), _COMMIT_WITHIN_S)
        except TimeoutError:
            message = f"no commit was lost within {_COMMIT_WITHIN_S:.0f} s"
            raise NoProgressError(message) from None
        finally:
            for proxy in self._zookeeper[broker]:
                proxy.disarm()
