"""The memory that the requests of all connections take: queued.max.request.bytes (KIP-72). Pure.

A request counts from its first byte until its response is sent. At the limit the broker stops
reading large frames, except the frame that began first. That frame may exceed the limit, so that
requests finish one after another. Small frames are always read. If idle clients take the memory,
the broker closes their connections, beginning with the one whose frame began first.

Kafka reserves the length that a client announces. This module counts the bytes that were received.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

R = TypeVar("R", bound=Hashable)

SMALL_FRAME_BYTES: Final = 64 * 1024
# A client that may send, and sends less than this between two checks, is idle.
PROGRESS_BYTES: Final = 64 * 1024
# The most bytes that asyncio reads from a connection at once.
_READ_BYTES: Final = 256 * 1024
# No more idle clients are closed once this share of the limit is free.
_FREE_SHARE: Final = 0.1


class Held(NamedTuple):
    """The bytes that one connection's requests take."""

    whole: int = 0  # in complete frames that are not answered yet
    partial: int = 0  # received bytes of the incomplete frame
    claimed: int = 0  # the length of the incomplete frame; 0 while it is unknown
    number: int = 0  # complete frames received before the incomplete one


_NOTHING: Final = Held()


class RequestMemory(Generic[R]):
    """Counts the bytes of all readers; a reader is one connection."""

    def __init__(self, bytes_max: int, frame_bytes_max: int) -> None:
        """As in Kafka, one frame may exceed `bytes_max`."""
        self.bytes_max = bytes_max
        self._excess_from = bytes_max + frame_bytes_max
        self._held: dict[R, Held] = {}
        # Readers with an incomplete frame, in the order in which these frames began.
        self._partial: dict[R, None] = {}
        self._muted: set[R] = set()
        self._whole_bytes = self._partial_bytes = 0
        # What the readers with an incomplete frame held at the last check. It lacks readers that
        # were muted then or have been muted since.
        self._checked: dict[R, Held] = {}

    @property
    def used(self) -> int:
        """The bytes that all requests take now."""
        return self._whole_bytes + self._partial_bytes

    @property
    def is_exhausted(self) -> bool:
        """True if the limit is reached."""
        return self.used >= self.bytes_max

    @property
    def has_muted(self) -> bool:
        """True while readers wait for memory."""
        return bool(self._muted)

    def update(self, reader: R, held: Held) -> None:
        """Set the bytes that a reader holds. A reader that holds none is forgotten."""
        before = self._held.pop(reader, _NOTHING)
        self._whole_bytes += held.whole - before.whole
        self._partial_bytes += held.partial - before.partial
        if held.whole or held.partial:
            self._held[reader] = held
        if not held.partial or held.number != before.number:
            self._partial.pop(reader, None)
            self._muted.discard(reader)
        if held.partial:
            self._partial.setdefault(reader)

    def may_read(self, reader: R) -> bool:
        """Return whether to read on. If not, a later call of `released` returns the reader."""
        if not self.is_exhausted or self._held.get(reader, _NOTHING).claimed <= SMALL_FRAME_BYTES:
            return True
        if reader == self._first:
            return True
        self._muted.add(reader)
        self._checked.pop(reader, None)
        return False

    @property
    def _first(self) -> R | None:
        """The reader that may exceed the limit; None if complete requests alone reach the limit."""
        return next(iter(self._partial), None) if self._whole_bytes < self.bytes_max else None

    def released(self) -> list[R]:
        """Return as many muted readers as there is memory for, oldest frames first."""
        if not self.has_muted:
            return []
        room = -(-(self.bytes_max - self.used) // _READ_BYTES)
        muted = (connection for connection in self._partial if connection in self._muted)
        if room > 0:
            released = list(itertools.islice(muted, room))
        else:
            released = [
                connection for connection in itertools.islice(muted, 1) if connection == self._first
            ]
        self._muted.difference_update(released)
        return released

    def take_excess(self) -> list[R]:
        """Return the readers to close if the excess is more than one frame of the largest size."""
        if self.used <= self._excess_from:
            return []
        return self._take(tuple(self._partial), self._excess_from)

    def take_idle(
        self, *, was_blocked: bool = False, unread_bytes: Callable[[R], int] = lambda _: 0
    ) -> list[R]:
        """Return the idle readers to close if the limit is reached; call this at intervals.

        An idle reader has not been muted since the last call, but has sent less than
        `PROGRESS_BYTES`. If complete requests alone reach the limit, no reader is closed: the
        memory becomes free when they are answered. If the broker itself was blocked since the last
        call, no reader is closed either. `unread_bytes` returns how many bytes have arrived from a
        reader but are not read yet; they count as sent.
        """
        before, self._checked = {} if was_blocked else self._checked, {}
        if not self.is_exhausted or self._whole_bytes >= self.bytes_max:
            return []
        self._checked = {
            connection: self._held[connection]
            for connection in self._partial
            if connection not in self._muted
        }
        idle = [
            connection
            for connection, held in self._checked.items()
            if (earlier := before.get(connection)) is not None
            and earlier.number == held.number
            and held.partial - earlier.partial + unread_bytes(connection) < PROGRESS_BYTES
        ]
        return self._take(idle, int(self.bytes_max * (1 - _FREE_SHARE)))

    def _take(self, readers: Sequence[R], bytes_max: int) -> list[R]:
        taken = []
        for reader in readers:
            if self.used <= bytes_max:
                break
            self.update(reader, Held(whole=self._held[reader].whole))
            taken.append(reader)
        return taken
