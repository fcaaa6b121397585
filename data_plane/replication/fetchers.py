"""The fetchers of one broker: a task and a connection for each leader that it follows."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from bridgehead.admin.config import Address
from bridgehead.admin.errors import AdminError
from bridgehead.kafka_wire.api_key import ApiKey
from data_plane.partitions import Partitions
from data_plane.replication.fetching import Fetching, FetchLimits
from data_plane.replication.peer import PeerConnection, PeerSecurity

_log = logging.getLogger(__name__)
_MS: Final = 1000


class Addresses(Protocol):
    """The addresses of the other brokers' inter-broker listeners."""

    def __call__(self, broker_id: int, /) -> Address | None:
        """Return the address; None if the broker is not live or lacks this listener."""


@dataclass(frozen=True, slots=True)
class _Services:
    """What the fetchers of one broker share."""

    partitions: Partitions
    address_of: Addresses
    security: PeerSecurity
    limits: FetchLimits
    timeout_s: float
    broker_epoch: Callable[[], int]


class ReplicaFetchers:
    """Follows the leaders of this broker's replicas. Used from the event loop only."""

    def __init__(
        self,
        partitions: Partitions,
        *,
        address_of: Addresses,
        security: PeerSecurity,
        limits: FetchLimits,
        socket_timeout_ms: int,
        broker_epoch: Callable[[], int],
    ) -> None:
        timeout_s = (socket_timeout_ms + limits.wait_max_ms) / _MS
        self._services = _Services(
            partitions, address_of, security, limits, timeout_s, broker_epoch
        )
        self._fetchers: dict[int, _LeaderFetcher] = {}
        self._has_ended = False

    def roles_changed(self) -> None:
        """Start and stop fetchers, after an update of the metadata; after `stop`, do nothing."""
        if self._has_ended:
            return
        partitions = self._services.partitions
        for name in partitions.take_changed():
            partition = partitions.by_name.get(name)
            leader = -1 if partition is None else partition.leader
            if leader not in (partitions.broker_id, -1) and leader not in self._fetchers:
                self._fetchers[leader] = _LeaderFetcher(self._services, leader)
            for fetcher in self._fetchers.values():
                fetcher.fetching.follow(name, partition)
        for leader, fetcher in list(self._fetchers.items()):
            if fetcher.fetching.is_empty:
                self._fetchers.pop(leader).stop()
            else:
                fetcher.wake()

    async def stop(self) -> None:
        """Stop fetching for ever. May be called twice."""
        self._has_ended = True
        fetchers, self._fetchers = list(self._fetchers.values()), {}
        for fetcher in fetchers:
            fetcher.stop()
        await asyncio.gather(*(fetcher.task for fetcher in fetchers), return_exceptions=True)


class _LeaderFetcher:
    """Fetches from one leader."""

    def __init__(self, services: _Services, leader: int) -> None:
        self._services = services
        self._leader = leader
        self.fetching = Fetching(services.partitions.broker_id, leader, services.limits)
        self._changed = asyncio.Event()
        self._last_failure = ""
        self.task = asyncio.create_task(self._run())

    def wake(self) -> None:
        """Do not wait for a retry: the roles have changed."""
        self._changed.set()

    def stop(self) -> None:
        """Stop. Appended records stay in the log."""
        self.task.cancel()

    async def _run(self) -> None:
        while True:
            try:
                await self._connected()
            except AdminError as error:
                self._failed(error)
            except Exception:
                _log.exception("the fetcher from broker %d failed unexpectedly", self._leader)
            await self._pause(self._services.limits.backoff_ms)

    def _failed(self, error: AdminError) -> None:
        """Log a failure unless the last one was the same. The fetcher tries again."""
        if str(error) != self._last_failure:
            _log.info("cannot fetch from broker %d: %s", self._leader, error)
        self._last_failure = str(error)

    async def _connected(self) -> None:
        services = self._services
        address = services.address_of(self._leader)
        if address is None:
            return
        peer = await PeerConnection.open(address, services.security, services.timeout_s)
        self._last_failure = ""
        self.fetching.restart()
        try:
            while True:
                await self._round(peer)
        finally:
            peer.close()

    async def _round(self, peer: PeerConnection) -> None:
        """Send the ListOffsets and Fetch requests that are due. If there is none, wait."""
        self._changed.clear()
        fetching, timeout_s = self.fetching, self._services.timeout_s
        asked = fetching.offsets_request(_now_ms())
        if asked is not None:
            offsets = await peer.request(ApiKey.LIST_OFFSETS, asked, timeout_s)
            fetching.offsets_listed(offsets, _now_ms())
        wanted = fetching.fetch_request(_now_ms(), self._services.broker_epoch())
        if wanted is not None:
            response = await peer.request(ApiKey.FETCH, wanted, timeout_s)
            fetching.fetched(response, _now_ms(), self._services.partitions.now_ms())
        elif asked is None:
            await self._pause(max(1, fetching.retry_in_ms(_now_ms())))

    async def _pause(self, ms: int) -> None:
        """Wait; stop waiting when the roles change."""
        try:
            async with asyncio.timeout(ms / _MS):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
