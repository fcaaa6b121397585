"""Holds new connections until the quotas admit them. Until then nothing is read from them.

Each listener admits one connection at a time, as Kafka's acceptor does. Waiting sockets cost
memory, so at most a thousand may wait at each listener. Further connections are closed immediately.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from broker_proxy.connections.connection_quotas import ConnectionQuotas
from broker_proxy.connections.connection_rates import ConnectionRates

_log = logging.getLogger(__name__)
WAITING_MAX: Final = 1_000


@dataclass(slots=True)
class _Arrival:
    """A waiting connection; `enter` is called when it is admitted."""

    transport: asyncio.Transport
    address: str
    enter: Callable[[], None]
    may_enter_s: float | None = None  # set when it is at the head of its queue


@dataclass(slots=True)
class _Queue:
    listener: str
    arrivals: deque[_Arrival] = field(default_factory=deque)
    timer: asyncio.TimerHandle | None = None


class Admission:
    """Admits connections on all listeners of one broker."""

    def __init__(
        self,
        quotas: ConnectionQuotas,
        rates: ConnectionRates,
        now_s: Callable[[], float],
        waiting_max: int = WAITING_MAX,
    ) -> None:
        """`waiting_max`: the connections of one listener that may wait."""
        self.quotas = quotas
        self._rates = rates
        self._now_s = now_s
        self.waiting_max = waiting_max
        self._is_closed = False
        self._queues = {name: _Queue(name) for name in quotas.listeners}

    @property
    def waiting_count(self) -> int:
        """The number of connected clients that are not admitted yet."""
        return sum(len(queue.arrivals) for queue in self._queues.values())

    def arrive(
        self, listener: str, transport: asyncio.Transport, address: str, enter: Callable[[], None]
    ) -> None:
        """Call `enter` when the connection is admitted: immediately, later, or never.

        If the evidence cannot be written, `enter` raises OSError and the connection is closed.
        """
        queue = self._queues[listener]
        if self._is_closed or len(queue.arrivals) >= self.waiting_max:
            transport.abort()
            return
        transport.pause_reading()
        queue.arrivals.append(_Arrival(transport, address, enter))
        if len(queue.arrivals) == 1:
            self._advance(queue)

    def left(self, listener: str, address: str) -> None:
        """Release the slot of an admitted client that disconnected."""
        self.quotas.remove(listener, address)
        self.look_again()

    def look_again(self) -> None:
        """Admit the waiting connections that the current limits allow."""
        for queue in self._queues.values():
            self._advance(queue)

    def close(self) -> None:
        """Close every waiting connection and admit no more."""
        self._is_closed = True
        for queue in self._queues.values():
            if queue.timer is not None:
                queue.timer.cancel()
            for arrival in queue.arrivals:
                arrival.transport.abort()
            queue.arrivals.clear()

    def _advance(self, queue: _Queue) -> None:
        if queue.timer is not None:
            queue.timer.cancel()
            queue.timer = None
        while queue.arrivals:
            first, now_s = queue.arrivals[0], self._now_s()
            if first.may_enter_s is None:
                first.may_enter_s = now_s + self.quotas.delay_ms(queue.listener) / 1000
            if now_s < first.may_enter_s:
                wait_s = first.may_enter_s - now_s
                loop = asyncio.get_running_loop()
                queue.timer = loop.call_later(wait_s, self._advance, queue)
                return
            if not self.quotas.has_slot(queue.listener):
                return
            queue.arrivals.popleft()
            self._let_in(queue.listener, first)

    def _let_in(self, listener: str, arrival: _Arrival) -> None:
        transport = arrival.transport
        if transport.is_closing():
            return
        delay_ms = self._rates.delay_ms(arrival.address)
        if delay_ms is not None:
            self.quotas.take_back(listener, delay_ms)
            self._keep_waiting(transport, delay_ms)
            return
        limit = self.quotas.add(listener, arrival.address)
        if limit is not None:
            _log.info(
                "Rejected connection from %s, address already has the configured maximum of %d "
                "connections.",
                arrival.address,
                limit,
            )
            transport.abort()
            return
        transport.resume_reading()
        try:
            arrival.enter()
        except OSError as error:
            _log.warning("closed a connection that cannot be recorded: %s", error)
            self.quotas.remove(listener, arrival.address)
            transport.abort()

    def _keep_waiting(self, transport: asyncio.Transport, delay_ms: int) -> None:
        """Read nothing from the connection; close it when its address may connect again."""
        rates = self._rates
        rates.kept_waiting += 1

        def close() -> None:
            rates.kept_waiting -= 1
            transport.abort()

        asyncio.get_running_loop().call_later(delay_ms / 1000, close)
