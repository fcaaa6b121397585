"""Limits on the number of connections and on the rate of new ones. Pure.

Implements `max.connections` (KIP-402), `max.connections.per.ip` with its overrides (KIP-308) and
`max.connection.creation.rate` (KIP-612) like Kafka 3.9's ConnectionQuotas. A connection over the
limit of its address is rejected. A connection over any other limit waits. The inter-broker listener
is exempt from the broker-wide limits, unless it is the only listener. The clock is injected.
"""

from __future__ import annotations

import ipaddress
import logging
import math
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from cluster_model.configs.broker_configs import EffectiveBrokerConfig
from cluster_model.host_text import host_text
from metrics.windows import Average, Rate

_log = logging.getLogger(__name__)
_UNLIMITED: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Connection limits as configured."""

    broker: int = _UNLIMITED
    broker_rate: int = _UNLIMITED  # new connections per second
    per_ip: int = _UNLIMITED
    per_ip_overrides: Mapping[str, int] = field(default_factory=dict)  # by address
    listeners: Mapping[str, int] = field(default_factory=dict)
    listener_rates: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, config: EffectiveBrokerConfig, listeners: Iterable[str]) -> ConnectionLimits:
        """Read the effective configs. A listener without limits of its own gets the broker's."""
        names = tuple(listeners)

        def number(name: str, listener: str | None = None) -> int:
            value = config.value(name) if listener is None else config.of_listener(listener, name)
            assert isinstance(value, int)
            return value

        overrides = str(config.value("max.connections.per.ip.overrides") or "")
        return cls(
            number("max.connections"),
            number("max.connection.creation.rate"),
            number("max.connections.per.ip"),
            _overrides(overrides),
            {name: number("max.connections", name) for name in names},
            {name: number("max.connection.creation.rate", name) for name in names},
        )


def _overrides(text: str) -> dict[str, int]:
    """Return the limit of each address. A host name is not looked up and has no effect."""
    overrides = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = item.rpartition(":")
        try:
            overrides[ip_address(host.strip())] = int(count)
        except ValueError:
            _log.warning(
                "max.connections.per.ip.overrides: %s has no effect; use an IP address", item
            )
    return overrides


def ip_address(host: str) -> str:
    """Return an IP address in the form of clients' addresses. Raises ValueError for a host name."""
    try:
        return host_text(socket.inet_aton(host))  # Accepts 127.1, as Java does.
    except OSError:
        return host_text(ipaddress.ip_address(host.strip("[]")).packed)


class ConnectionQuotas:
    """Counts connections and decides which may connect."""

    def __init__(
        self,
        listeners: Iterable[str],
        inter_broker_listener: str | None,
        *,
        samples: int,
        window_s: int,
        now_s: Callable[[], float],
    ) -> None:
        """`samples`, `window_s`: quota.window.num and quota.window.size.seconds."""
        self.listeners = tuple(listeners)
        self._protected = inter_broker_listener if len(self.listeners) > 1 else None
        self._now_s = now_s
        self._window_ms = window_s * 1000
        self.limits = ConnectionLimits()
        self._total = 0
        self._by_listener: Counter[str] = Counter()
        self._by_address: Counter[str] = Counter()
        self._broker_rate = Rate(samples, self._window_ms)
        self._rates = {name: Rate(samples, self._window_ms) for name in self.listeners}
        self._delays = {name: Average() for name in self.listeners}
        self._address_delays = {name: Average() for name in self.listeners}

    def is_protected(self, listener: str) -> bool:
        """True for a listener that is exempt from broker-wide limits."""
        return listener == self._protected

    def delay_ms(self, listener: str) -> int:
        """Count one new connection; return the milliseconds that it must wait for admission."""
        now_s, delay_ms = self._now_s(), 0
        if not self.is_protected(listener):
            delay_ms = self._record(self._broker_rate, self.limits.broker_rate, now_s)
        limit = self.limits.listener_rates.get(listener, _UNLIMITED)
        delay_ms = max(delay_ms, self._record(self._rates[listener], limit, now_s))
        if delay_ms:
            self._delays[listener].record(delay_ms, now_s)
        return delay_ms

    def _record(self, rate: Rate, limit: int, now_s: float) -> int:
        rate.record(now_s)
        measured = rate.measure(now_s)
        if measured <= limit:
            return 0
        if limit <= 0:
            return self._window_ms
        wait_ms = (measured - limit) / limit * rate.elapsed_ms(now_s)
        return min(self._window_ms, math.floor(wait_ms + 0.5))

    def take_back(self, listener: str, delay_ms: int) -> None:
        """Do not count the last connection. Its address is over the rate, so it is not admitted."""
        if not self.is_protected(listener):
            self._broker_rate.take_back()
        self._rates[listener].take_back()
        self._address_delays[listener].record(delay_ms, self._now_s())

    def has_slot(self, listener: str) -> bool:
        """True if one more client may connect now. If not, the client waits for a disconnect."""
        limits = self.limits
        if self._by_listener[listener] >= limits.listeners.get(listener, _UNLIMITED):
            return False
        return self.is_protected(listener) or self._total < limits.broker

    def add(self, listener: str, address: str) -> int | None:
        """Count a client. If its address has reached its limit, return the limit instead."""
        limit = self.limits.per_ip_overrides.get(address, self.limits.per_ip)
        if self._by_address[address] >= limit:
            return limit
        self._by_address[address] += 1
        self._by_listener[listener] += 1
        self._total += 1
        return None

    def remove(self, listener: str, address: str) -> None:
        """Remove a client from the counts."""
        self._total -= 1
        self._by_listener[listener] -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    @property
    def excess(self) -> int:
        """The number of connections above the broker-wide limit. They must be closed."""
        return max(self._total - self.limits.broker, 0)

    # --- For the metrics -------------------------------------------------------------------

    def broker_accept_rate(self) -> float:
        """New connections per second, without those of the protected listener."""
        return self._broker_rate.measure(self._now_s())

    def accept_rates(self) -> Mapping[tuple[str, ...], float]:
        """New connections per second of each listener."""
        now_s = self._now_s()
        return {(name,): rate.measure(now_s) for name, rate in self._rates.items()}

    def throttle_times_ms(self) -> Mapping[tuple[str, ...], float]:
        """Per listener: the average delay of connections above the listener's or broker's rate."""
        now_s = self._now_s()
        return {(name,): delay.measure(now_s) for name, delay in self._delays.items()}

    def address_throttle_times_ms(self) -> Mapping[tuple[str, ...], float]:
        """Per listener: the average delay of connections above the rate of their address."""
        now_s = self._now_s()
        return {(name,): delay.measure(now_s) for name, delay in self._address_delays.items()}
