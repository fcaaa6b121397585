"""One client connection, without its socket: order, names of requests, what may still be read.

Kafka executes one request of a connection at a time and answers in order; different connections
know nothing of each other. Request ids are made here and never taken from the client, or one
client could merge its history with another's.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from bridgehead.kafka_wire.framing import FrameBuffer
from bridgehead.kafka_wire.headers import decode_request_header

# Read ahead of execution: enough to keep a pipelining client busy, little enough that a client
# that never reads its answers costs no memory worth the name.
FRAMES_QUEUED_MAX: Final = 128


class ClientConnection:
    """What one client has sent and is still owed."""

    def __init__(
        self, info: ClientConnectionInfo, *, request_prefix: str, frame_bytes_max: int
    ) -> None:
        self.info = info
        self._prefix = request_prefix
        self._frames = FrameBuffer(frame_bytes_max)
        self._queued: deque[bytes] = deque()
        self._count = 0

    def receive_data(self, data: bytes) -> None:
        """Take what the socket gave. Raises FrameError: close the connection."""
        self._queued.extend(self._frames.receive_data(data))

    @property
    def is_full(self) -> bool:
        """True while nothing more should be read from the socket."""
        return len(self._queued) >= FRAMES_QUEUED_MAX

    @property
    def is_drained(self) -> bool:
        """True when no request waits for its turn."""
        return not self._queued

    def next_frame(self) -> bytes | None:
        """Return the next request's bytes in its turn, or None."""
        return self._queued.popleft() if self._queued else None

    def open_request(self, frame: bytes, received_ns: int) -> ClientRequest:
        """Read the header; the body stays as it came.

        Raises:
            UnsupportedVersionError: a known API in an unknown version.
            WireError: not a request.
        """
        header, at = decode_request_header(frame)
        self._count += 1
        return ClientRequest(
            request_id=f"{self._prefix}.{self._count}.{header.correlation_id}",
            header=header,
            header_bytes=frame[:at],
            body=frame[at:],
            connection=self.info,
            received_ns=received_ns,
        )
