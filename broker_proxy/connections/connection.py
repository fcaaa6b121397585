"""One client connection without its socket: request order, request ids, read-ahead limits.

Responses are sent in the order of the requests. Kafka executes the requests of one connection one
at a time. We do, too, except for the writes that overlapping_writes.py selects. Request ids are
generated here: if clients chose them, two requests could have the same id, and the evidence would
not tell them apart.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import SPECS
from bridgehead.kafka_wire.framing import FrameBuffer, FrameError
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    UnsupportedVersionError,
    decode_request_header,
)
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from broker_proxy.connections.request_memory import Held

# Read-ahead limits: high enough to keep a pipelining client busy, and low enough that a client that
# never reads its responses costs little memory.
FRAMES_QUEUED_MAX: Final = 128
QUEUED_BYTES_MAX: Final = 1024 * 1024
_PRODUCE: Final = ApiKey.PRODUCE.to_bytes(2, "big")


def is_produce(frame: bytes) -> bool:
    """Return whether a frame is a Produce request."""
    return frame[:2] == _PRODUCE


class ClientConnection:
    """The frames that one client has sent and that are not executed yet."""

    def __init__(
        self, info: ClientConnectionInfo, *, request_prefix: str, frame_bytes_max: int
    ) -> None:
        self.info = info
        self._prefix = request_prefix
        self._frames = FrameBuffer(frame_bytes_max)
        self._queued: deque[bytes] = deque()
        self._queued_bytes = 0
        self._executing_bytes = 0
        self._received = 0  # frames
        self._count = 0
        self.broken: FrameError | None = None

    def receive_data(self, data: bytes) -> None:
        """Split received bytes into frames.

        A framing error sets `broken`; complete frames before it are still executed, then the
        connection is closed.
        """
        if self.broken is not None:
            return
        try:
            frames = self._frames.receive_data(data)
        except FrameError as error:
            self.broken = error
            frames = error.frames
        self._received += len(frames)
        self._queued.extend(frames)
        self._queued_bytes += sum(map(len, frames))

    @property
    def held(self) -> Held:
        """The memory that this connection's requests take."""
        frames, whole = self._frames, self._queued_bytes + self._executing_bytes
        return Held(whole, frames.partial_bytes, frames.claimed_bytes, self._received)

    @property
    def frame_bytes_max(self) -> int:
        """The limit on the size of a frame. It is lower until the client has logged in."""
        return self._frames.frame_bytes_max

    @frame_bytes_max.setter
    def frame_bytes_max(self, limit: int) -> None:
        self._frames.frame_bytes_max = limit

    @property
    def is_full(self) -> bool:
        """True while the broker should not read from the socket."""
        return (
            len(self._queued) >= FRAMES_QUEUED_MAX
            or self._queued_bytes >= QUEUED_BYTES_MAX
            or self.broken is not None
        )

    @property
    def is_drained(self) -> bool:
        """True when no frame is queued."""
        return not self._queued

    @property
    def has_produce(self) -> bool:
        """True while a Produce request is queued."""
        return any(map(is_produce, self._queued))

    def next_frame(self) -> bytes | None:
        """Return the next frame, or None. The previous frame counts as answered."""
        self.end_execution()
        if not self._queued:
            return None
        frame = self._queued.popleft()
        self._queued_bytes -= len(frame)
        self._executing_bytes = len(frame)
        return frame

    def queued_frame(self, index: int) -> bytes | None:
        """Return a queued frame without taking it; None if fewer are queued."""
        return self._queued[index] if index < len(self._queued) else None

    def end_execution(self) -> None:
        """Record that no request is executing."""
        self._executing_bytes = 0

    def drop_frames(self) -> None:
        """Drop the frames that are not executing, because the connection is closed."""
        self._frames.clear()
        self._queued.clear()
        self._queued_bytes = 0

    def open_request(self, frame: bytes, received_ns: int) -> ClientRequest:
        """Decode the header; the body stays as received.

        Raises:
            UnsupportedVersionError: the API is known, but its version is not.
            WireError: the frame is not a request.
        """
        dialect = self.info.client.dialect
        header, at = decode_request_header(frame, dialect)
        if header.api_version < SPECS[dialect][header.api_key].served_from:
            raise UnsupportedVersionError(header)
        return self.name_request(header, frame, at, received_ns)

    def name_request(
        self, header: RequestHeader, frame: bytes, body_at: int, received_ns: int
    ) -> ClientRequest:
        """Assign a request id that is unique across connections and restarts."""
        self._count += 1
        if header.client_id != self.info.client.client_id:
            self.info.client = replace(self.info.client, client_id=header.client_id)
        return ClientRequest(
            request_id=f"{self._prefix}.{self._count}.{header.correlation_id}",
            header=header,
            header_bytes=frame[:body_at],
            body=frame[body_at:],
            connection=self.info,
            client=self.info.client,
            received_ns=received_ns,
        )
