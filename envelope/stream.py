"""Code for both ends of a channel: limits, heartbeats and batched writes.

A gRPC message costs 100 to 200 microseconds regardless of its size, so each message contains
everything that is queued, up to a limit. With 32 Envelopes in flight, a prototype carried 92,000
Envelopes per second instead of the 6,100 that it carries with one Envelope per message. A frozen
peer does not close its connection. Heartbeats detect a frozen peer within two seconds; gRPC's
keepalive takes a minute.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

HEARTBEAT_EVERY_S: Final = 0.5
# A broker sends a heartbeat when it gets the controller's, which costs it no timer. After this time
# it sends one in any case.
BROKER_HEARTBEAT_EVERY_S: Final = 0.6
SILENCE_MAX_S: Final = 1.8
BATCH_ITEMS_MAX: Final = 1_000
# Bounds how long one message delays the items queued behind it. A message of at least this size
# takes no more items.
BATCH_BYTES_MAX: Final = 900 * 1000
# By default a request has at most 100 MiB (socket.request.max.bytes). The Envelope adds few bytes
# to it.
MESSAGE_BYTES_MAX: Final = 110 * 1024 * 1024
CHANNEL_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.enable_http_proxy", 0),
)


class Outbox:
    """The queue of items to write, with a signal that wakes the writer."""

    def __init__(self, heartbeat_every_s: float = HEARTBEAT_EVERY_S) -> None:
        self._heartbeat_every_s = heartbeat_every_s
        self._items: deque[tuple[Any, int]] = deque()
        self._wake = asyncio.Event()
        self._later: asyncio.TimerHandle | None = None

    def put(self, item: Any, size: int, delay_s: float = 0.0) -> None:
        """Queue one item of about `size` bytes.

        With `delay_s`, the writer waits at most that long for items to send in the same message.
        """
        self._items.append((item, size))
        if not delay_s:
            self._wake.set()
        elif self._later is None:
            self._later = asyncio.get_running_loop().call_later(delay_s, self._end_delay)

    def _end_delay(self) -> None:
        self._later = None
        if self._items:  # Empty if they were sent together with an item without a delay.
            self._wake.set()

    def wake(self) -> None:
        """Wake the writer although no item was queued."""
        self._wake.set()

    async def wait(self) -> bool:
        """Wait for items, `wake` or the time of a heartbeat; return whether there are items."""
        if not self._wake.is_set():
            heartbeat = asyncio.get_running_loop().call_later(
                self._heartbeat_every_s, self._wake.set
            )
            try:
                await self._wake.wait()
            finally:
                heartbeat.cancel()
        self._wake.clear()
        return bool(self._items)

    def take(self) -> list[Any]:
        """Remove and return the items of the next message, up to the limits."""
        batch: list[Any] = []
        size = 0
        while self._items and len(batch) < BATCH_ITEMS_MAX and size < BATCH_BYTES_MAX:
            item, item_size = self._items.popleft()
            batch.append(item)
            size += item_size
        if self._items:
            self._wake.set()
        return batch


class SilenceAlarm:
    """Calls `on_silence` once if no message arrives for `SILENCE_MAX_S`.

    The clock alone decides nothing. If this process was frozen or busy, the clock shows silence
    although the peer's messages are waiting in the socket. So after a long wait, which the clock
    ends, the alarm counts short ticks, during which these messages are received.
    """

    _TICK_S: Final = 0.2
    _TICKS: Final = 3
    _WAIT_S: Final = SILENCE_MAX_S - _TICKS * _TICK_S

    def __init__(self, on_silence: Callable[[], object]) -> None:
        self._on_silence = on_silence
        self._silent_ticks = 0
        self._suspended = False
        self._loop = asyncio.get_running_loop()
        self._heard_s = self._loop.time()
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(self._WAIT_S, self._tick)

    def _tick(self) -> None:
        if self._suspended:
            self.message_received()
        # An idle channel has a heartbeat twice per wait, so most waits end here.
        rest_s = self._heard_s + self._WAIT_S - self._loop.time()
        if rest_s > 0:
            self._timer = self._loop.call_later(rest_s, self._tick)
        elif self._silent_ticks == self._TICKS:
            self._timer = None
            self._on_silence()
        else:
            self._silent_ticks += 1
            self._timer = self._loop.call_later(self._TICK_S, self._tick)

    def message_received(self) -> None:
        """Reset the alarm."""
        self._silent_ticks = 0
        self._heard_s = self._loop.time()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the alarm while this end does not read."""
        self._suspended = True
        try:
            yield
        finally:
            self._suspended = False
            self.message_received()

    def stop(self) -> None:
        """Stop the alarm."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
