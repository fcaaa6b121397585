"""Per-address connection rate limits: `connection_creation_rate` of ip entities (KIP-612).

Each broker counts on its own, as in Kafka. A connection over the rate is not counted. The broker
reads nothing from it, and closes it when the rate allows another connection, at the latest after
one window. The clock is injected.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from broker_proxy.connections.connection_quotas import ip_address
from cluster_model.znodes.entity_names import desanitize
from cluster_model.znodes.layout import DEFAULT_ENTITY
from metrics.windows import Rate

_KEY: Final = "connection_creation_rate"
# Bounds the memory, because clients choose their addresses. Over this number the address that
# connected least recently is forgotten.
_ADDRESSES_MAX: Final = 10_000
KEPT_WAITING_MAX: Final = 1_000


class ConnectionRates:
    """The limits and recent connections of all addresses."""

    def __init__(self, samples: int, window_s: int, now_s: Callable[[], float]) -> None:
        """`samples`, `window_s`: quota.window.num and quota.window.size.seconds."""
        self._samples, self._window_ms = samples, window_s * 1000
        self._now_s = now_s
        self._limits: dict[str, float] = {}  # by address or DEFAULT_ENTITY
        self._seen: OrderedDict[str, Rate] = OrderedDict()
        self.kept_waiting = 0
        self.kept_waiting_max = KEPT_WAITING_MAX

    def replace_all(self, stored: Mapping[str, Mapping[str, str]]) -> None:
        """Replace every ip's configs; the keys of `stored` are the names in ZooKeeper."""
        self._limits.clear()
        for name, configs in stored.items():
            self.update(name, configs)

    def update(self, stored_name: str, configs: Mapping[str, str]) -> None:
        """Replace one ip's configs. A host name is not looked up and has no effect."""
        address = _address(stored_name)
        rate = _number(configs.get(_KEY))
        if address is not None and rate is not None:
            self._limits[address] = rate
        elif address is not None:
            self._limits.pop(address, None)

    def delay_ms(self, address: str) -> int | None:
        """Return None to admit and count a connection, else the delay before it is closed.

        The delay is 0 if too many connections already wait to be closed.
        """
        limit = self._limits.get(address, self._limits.get(DEFAULT_ENTITY))
        if limit is None:
            return None
        rate = self._seen.pop(address, None) or Rate(self._samples, self._window_ms)
        self._seen[address] = rate
        if len(self._seen) > _ADDRESSES_MAX:
            self._seen.popitem(last=False)
        now_s = self._now_s()
        rate.record(now_s)
        measured = rate.measure(now_s)
        if measured <= limit:
            return None
        rate.take_back()
        if self.kept_waiting >= self.kept_waiting_max:
            return 0
        if limit <= 0:
            return self._window_ms
        seconds = (self._samples - 1) * self._window_ms / 1000
        wait_ms = math.floor((measured - limit) / limit * seconds * 1000 + 0.5)
        return min(self._window_ms, wait_ms)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None  # An invalid value, written directly to ZooKeeper.


def _address(stored_name: str) -> str | None:
    """Return an ip entity's address, or DEFAULT_ENTITY; None for a host name."""
    name = desanitize(stored_name)
    if name is None:
        return DEFAULT_ENTITY
    try:
        return ip_address(name)
    except ValueError:
        return None
