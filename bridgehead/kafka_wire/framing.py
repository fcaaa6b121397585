"""Kafka frames: a 4-byte big-endian length, then that many bytes.

No I/O happens here; the caller moves bytes to and from the socket.
"""

from __future__ import annotations

import struct
from typing import Final

from bridgehead.kafka_wire.primitives import WireError

FRAME_BYTES_MAX: Final = 100 * 1024 * 1024  # Kafka's socket.request.max.bytes.
_LENGTH: Final = struct.Struct(">i")


class FrameError(WireError):
    """A frame has an invalid length. The connection must be closed.

    `frames` are the complete frames of the same read that precede the invalid one. A broker answers
    them first.
    """

    def __init__(self, message: str, frames: list[bytes]) -> None:
        super().__init__(message)
        self.frames = frames


class FrameBuffer:
    """Turns a stream of bytes into frames.

    >>> frames = FrameBuffer()
    >>> frames.receive_data(bytes([0, 0, 0, 2]))
    []
    >>> frames.receive_data(b"hi")
    [b'hi']
    """

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._buffer = bytearray()
        self.frame_bytes_max = frame_bytes_max

    @property
    def partial_bytes(self) -> int:
        """The received bytes of the incomplete frame."""
        return len(self._buffer)

    @property
    def claimed_bytes(self) -> int:
        """The length of the incomplete frame; 0 while it is unknown."""
        return _LENGTH.unpack_from(self._buffer)[0] if len(self._buffer) >= _LENGTH.size else 0

    def clear(self) -> None:
        """Drop the incomplete frame: nothing more will be received."""
        self._buffer.clear()

    def receive_data(self, data: bytes) -> list[bytes]:
        """Add bytes from the socket; return every frame that is now whole.

        Raises:
            FrameError: a length is below 0 or above the limit. Any other exception is a bug in
                this class.
        """
        if self._buffer:
            self._buffer += data
            frames, used = self._take(self._buffer)
            del self._buffer[:used]
            return frames
        # Most reads have whole frames; these are cut out of the data with one copy.
        frames, used = self._take(data)
        if used < len(data):
            self._buffer += data[used:]
        return frames

    def _take(self, data: bytes | bytearray) -> tuple[list[bytes], int]:
        frames: list[bytes] = []
        at, size = 0, len(data)
        while size - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(data, at)
            if not 0 <= length <= self.frame_bytes_max:
                limit = self.frame_bytes_max
                raise FrameError(f"a frame of {length} bytes; the limit is {limit}", frames)
            end = at + _LENGTH.size + length
            if end > size:
                break
            frames.append(bytes(memoryview(data)[at + _LENGTH.size : end]))
            at = end
        return frames, at


def frame(payload: bytes) -> bytes:
    """Return `payload` with its length in front."""
    return _LENGTH.pack(len(payload)) + payload
