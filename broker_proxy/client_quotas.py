"""Quotas on produced and fetched bytes (KIP-13) and on request time (KIP-124), as in Kafka 3.9.

Each broker measures on its own, over `quota.window.num` windows of `quota.window.size.seconds`. A
client above its quota gets its response at once; the response names the throttle time, and the
broker then executes no request of the connection for that time. The clock is injected.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from cluster_model.client import Client
from cluster_model.client_quotas import QuotaLevel, governing_level
from cluster_model.mutation_rates import MUTATION_RATE
from cluster_model.records import ConfigResource
from metrics.windows import Rate

PRODUCED: Final = "producer_byte_rate"
FETCHED: Final = "consumer_byte_rate"
REQUEST_TIME: Final = "request_percentage"
_ENTITIES: Final = ("users", "clients")
_THROTTLE_MS_MAX: Final = 2**31 - 1
# Bounds the memory, because clients choose their ids. The least recently used level is dropped.
_LEVELS_MAX: Final = 10_000


class ClientQuota:
    """One kind of quota: the limits of all entities, and what their clients have used."""

    def __init__(
        self,
        key: str,
        samples: int,
        window_s: int,
        now_s: Callable[[], float],
        throttle_ms_max: int = _THROTTLE_MS_MAX,
    ) -> None:
        """`key` names the config that sets the limit per second."""
        self._key = key
        self._samples, self._window_s = samples, window_s
        self._now_s = now_s
        self._throttle_ms_max = throttle_ms_max
        self._limits: dict[ConfigResource, float] = {}
        self._used: OrderedDict[QuotaLevel, Rate] = OrderedDict()

    @property
    def is_enabled(self) -> bool:
        """Whether any entity has a limit."""
        return bool(self._limits)

    def update(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Replace the limit of one entity. Text that is not a number is ignored, as in Kafka."""
        self._limits.pop(resource, None)
        if self._key in configs:
            try:
                self._limits[resource] = float(configs[self._key])
            except ValueError:
                return

    def forget(self, entity_type: str) -> None:
        """Remove the limits of all entities of a type."""
        self._limits = {
            resource: limit
            for resource, limit in self._limits.items()
            if resource.entity_type != entity_type
        }

    def charge(self, client: Client, amount: float) -> int:
        """Count what a client used; return how many milliseconds to throttle it."""
        level, limit = self._governing(client)
        if limit is None:
            return 0
        rate = self._used.pop(level, None) or Rate(self._samples, self._window_s * 1000)
        self._used[level] = rate
        if len(self._used) > _LEVELS_MAX:
            self._used.popitem(last=False)
        now_s = self._now_s()
        rate.record(now_s, amount)
        measured = rate.measure(now_s)
        if measured <= limit or math.isnan(limit):  # Kafka does not throttle for NaN either.
            return 0
        if limit <= 0:
            return self._throttle_ms_max
        wait_ms = math.floor((measured - limit) / limit * rate.elapsed_ms(now_s) + 0.5)
        return min(self._throttle_ms_max, wait_ms)

    def take_back(self, client: Client, amount: float) -> None:
        """Undo the last `charge` of this amount: the client did not get the bytes."""
        level, _ = self._governing(client)
        if level in self._used:
            self._used[level].take_back(amount)

    def largest(self, client: Client) -> float:
        """Return the most that a client may use at once: what it may use in all windows but one."""
        _, limit = self._governing(client)
        return math.inf if limit is None else limit * (self._samples - 1) * self._window_s

    def _governing(self, client: Client) -> tuple[QuotaLevel, float | None]:
        if not self._limits:
            return QuotaLevel("", None), None
        return governing_level(self._limits, client.principal.name, client.client_id)


class ClientQuotas:
    """The quotas that this broker enforces. Their limits are configs of users and client ids."""

    def __init__(self, samples: int, window_s: int, now_s: Callable[[], float]) -> None:
        """`samples`, `window_s`: quota.window.num and quota.window.size.seconds."""
        self.produced = ClientQuota(PRODUCED, samples, window_s, now_s)
        self.fetched = ClientQuota(FETCHED, samples, window_s, now_s)
        # Percent of one thread's time. As in Kafka, a throttle time is at most one window.
        self.request_time = ClientQuota(REQUEST_TIME, samples, window_s, now_s, window_s * 1000)
        # The controller enforces this one. The broker only needs to know whether it is enabled.
        self.mutations = ClientQuota(MUTATION_RATE, samples, window_s, now_s)
        self._all = (self.produced, self.fetched, self.request_time, self.mutations)

    def update(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Apply a change of one entity's configs."""
        if resource.entity_type in _ENTITIES:
            for quota in self._all:
                quota.update(resource, configs)

    def replace_all(self, entity_type: str, stored: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the configs of all entities of a type. Keys of `stored`: names in ZooKeeper."""
        for quota in self._all:
            quota.forget(entity_type)
            for name, configs in stored.items():
                quota.update(ConfigResource(entity_type, name), configs)
