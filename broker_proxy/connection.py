"""One client connection, without its socket: order, names of requests, what may still be read.

Kafka executes one request of a connection at a time and answers in order; different connections
know nothing of each other. Request ids are made here and never taken from the client, or one
client could merge its history with another's.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from bridgehead.kafka_wire.framing import FrameBuffer, FrameError
from bridgehead.kafka_wire.headers import RequestHeader, decode_request_header
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest

# Read ahead of execution: enough to keep a pipelining client busy, little enough that a client
# that never reads its answers costs no memory worth the name.
FRAMES_QUEUED_MAX: Final = 128
QUEUED_BYTES_MAX: Final = 1024 * 1024


class ClientConnection:
    """What one client has sent and is still owed."""

    def __init__(
        self, info: ClientConnectionInfo, *, request_prefix: str, frame_bytes_max: int
    ) -> None:
        self.info = info
        self._prefix = request_prefix
        self._frames = FrameBuffer(frame_bytes_max)
        self._queued: deque[bytes] = deque()
        self._queued_bytes = 0
        self._count = 0
        self.broken: FrameError | None = None

    def receive_data(self, data: bytes) -> None:
        """Take what the socket gave.

        When it breaks the framing rule, `broken` says how: what came whole before is answered
        in its turn, then the connection is closed.
        """
        if self.broken is not None:
            return
        try:
            frames = self._frames.receive_data(data)
        except FrameError as wrong:
            self.broken = wrong
            frames = wrong.frames
        self._queued.extend(frames)
        self._queued_bytes += sum(map(len, frames))

    @property
    def frame_bytes_max(self) -> int:
        """The largest frame that is taken; small while the client is a stranger."""
        return self._frames.frame_bytes_max

    @frame_bytes_max.setter
    def frame_bytes_max(self, limit: int) -> None:
        self._frames.frame_bytes_max = limit

    @property
    def is_full(self) -> bool:
        """True while nothing more should be read from the socket."""
        return (
            len(self._queued) >= FRAMES_QUEUED_MAX
            or self._queued_bytes >= QUEUED_BYTES_MAX
            or self.broken is not None
        )

    @property
    def is_drained(self) -> bool:
        """True when no request waits for its turn."""
        return not self._queued

    def next_frame(self) -> bytes | None:
        """Return the next request's bytes in its turn, or None."""
        if not self._queued:
            return None
        frame = self._queued.popleft()
        self._queued_bytes -= len(frame)
        return frame

    def open_request(self, frame: bytes, received_ns: int) -> ClientRequest:
        """Read the header; the body stays as it came.

        Raises:
            UnsupportedVersionError: a known API in an unknown version.
            WireError: not a request.
        """
        header, at = decode_request_header(frame, self.info.dialect)
        return self.name_request(header, frame, at, received_ns)

    def name_request(
        self, header: RequestHeader, frame: bytes, body_at: int, received_ns: int
    ) -> ClientRequest:
        """Give a request its id, which no other request of any connection or boot has."""
        self._count += 1
        return ClientRequest(
            request_id=f"{self._prefix}.{self._count}.{header.correlation_id}",
            header=header,
            header_bytes=frame[:body_at],
            body=frame[body_at:],
            connection=self.info,
            received_ns=received_ns,
        )
