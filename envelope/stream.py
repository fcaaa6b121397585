"""What both ends of a channel share: limits, heartbeats, and writing everything queued at once.

grpcio costs 100 to 200 microseconds a message whatever is in it, so a message is a batch:
all that was queued since the last write (stack measurements: 92,000 Envelopes a second with 32
outstanding, against 6,100 one by one). A frozen peer answers nothing and closes nothing;
gRPC's own keepalive took a minute to notice, the heartbeat in the stream takes two seconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

HEARTBEAT_EVERY_S: Final = 0.5
SILENCE_MAX_S: Final = 1.8
BATCH_ITEMS_MAX: Final = 1_000
# A batch holds up what is queued behind it; one larger item still goes, alone.
BATCH_BYTES_MAX: Final = 900 * 1000
# A frame may have 100 MiB (socket.request.max.bytes), and an Envelope adds little to it.
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
    """What waits to be written, and the writer's alarm."""

    def __init__(self) -> None:
        self._items: deque[tuple[Any, int]] = deque()
        self._wake = asyncio.Event()

    def put(self, item: Any, size: int) -> None:
        """Queue one item of about `size` bytes."""
        self._items.append((item, size))
        self._wake.set()

    def wake(self) -> None:
        """Let the writer look again, though nothing was queued."""
        self._wake.set()

    async def wait(self) -> bool:
        """Wait for something to write; False when a heartbeat is due instead."""
        if not self._items:
            try:
                async with asyncio.timeout(HEARTBEAT_EVERY_S):
                    await self._wake.wait()
            except TimeoutError:
                return False
        self._wake.clear()
        return bool(self._items)

    def take(self) -> list[Any]:
        """Remove and return one batch: all that is queued, up to the limits."""
        batch: list[Any] = []
        size = 0
        while self._items and len(batch) < BATCH_ITEMS_MAX and size < BATCH_BYTES_MAX:
            item, item_size = self._items.popleft()
            batch.append(item)
            size += item_size
        return batch


class SilenceAlarm:
    """Calls `on_silence` once when the peer has said nothing for `SILENCE_MAX_S`.

    Our own process may have been frozen, or its loop busy: then what the peer said lies unread
    in the socket. The alarm therefore counts its own short ticks, not the clock.
    """

    _TICK_S: Final = 0.2

    def __init__(self, on_silence: Callable[[], object]) -> None:
        self._on_silence = on_silence
        self._silent_ticks = 0
        self._held = False
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._schedule()

    def _schedule(self) -> None:
        self._timer = self._loop.call_later(self._TICK_S, self._tick)

    def _tick(self) -> None:
        self._silent_ticks = 0 if self._held else self._silent_ticks + 1
        if self._silent_ticks * self._TICK_S >= SILENCE_MAX_S:
            self._timer = None
            self._on_silence()
        else:
            self._schedule()

    def heard(self) -> None:
        """The peer said something."""
        self._silent_ticks = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """No alarm meanwhile: it is we who do not listen."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            self._silent_ticks = 0

    def stop(self) -> None:
        """No more alarms."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
