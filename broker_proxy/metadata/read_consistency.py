"""Decides when this broker may answer reads and which zxid it reports to the controller.

`bridgehead.metadata.blocking=cluster` implements what KIP-4 calls ideal: a write completes when all
brokers have applied it. `bridgehead.metadata.reads=controller` implements an idea that KIP-590
leaves to future work. With neither, reads are answered immediately, as in Kafka.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from broker_proxy.forwarding.controller_requests import Forward
from broker_proxy.metadata.applied_metadata import AppliedMetadata, Membership, NewestZxid, ReadGate
from broker_proxy.metadata.cache import MetadataCache
from broker_proxy.metadata.session import ZooKeeperWatcher
from cluster_model.client import Client
from cluster_model.configs.bridgehead_configs import BridgeheadConfig
from cluster_model.session_state import SessionState
from envelope.messages import MetadataUpdate
from event_log.events import ImageAdvanced
from event_log.writer import EventLog

CLUSTER = "cluster"
CONTROLLER = "controller"


def waits_for_updates(settings: BridgeheadConfig) -> bool:
    """True if writes wait for updates at all brokers, or reads for updates at this broker."""
    return settings.metadata_blocking == CLUSTER or settings.metadata_reads == CONTROLLER


class ReadConsistency:
    """Tracks which metadata updates one broker has applied, and its registrations."""

    def __init__(
        self,
        config: BridgeheadConfig,
        broker_id: int,
        cache: MetadataCache,
        watcher: ZooKeeperWatcher,
        on_applied: Callable[[int], None],
    ) -> None:
        """`on_applied` gets each zxid up to which all updates and notifications are applied."""
        self._own = config
        self._broker_id = broker_id
        self._cache = cache
        self._watcher = watcher
        self._membership = Membership(broker_id, self._has_contact)
        self._applied: AppliedMetadata | None = None
        if waits_for_updates(config):
            self._applied = AppliedMetadata(watcher.catch_up, on_applied)

    def _has_contact(self) -> bool:
        silent_s = time.monotonic() - self._watcher.last_contact_s
        return silent_s * 1000 < self._watcher.session_timeout_ms * 2 / 3

    def registered(self, _epoch: int) -> None:
        """Record that the broker session has registered."""
        self._membership.registered()

    def session_changed(self, state: SessionState) -> None:
        """Record the new state of the broker session."""
        if state is SessionState.LOST:
            self._membership.lost()

    @property
    def generation(self) -> int:
        """The number of the current registration."""
        return self._membership.generation

    @property
    def applied_zxid(self) -> int:
        """The metadata zxid to report to the controller."""
        return self._cache.zxid if self._applied is None else self._applied.zxid

    def update_applied(self, zxid: int, generation: int) -> None:
        """Record that the cache has applied `zxid`, from an update received in `generation`."""
        if self._applied is None:
            return
        live = frozenset(self._cache.brokers)
        if self._broker_id not in live:
            self._membership.update_applied(live, generation)  # Answer no reads from now on.
        self._applied.cache_applied(
            zxid, partial(self._membership.update_applied, live, generation)
        )

    def read_gate(
        self, forward: Forward, client: Client, request_prefix: str, timeout_s: float
    ) -> ReadGate | None:
        """Return the gate for reads; None: they are answered immediately."""
        if self._applied is None:
            return None
        newest = NewestZxid(forward, client, request_prefix=request_prefix)
        return ReadGate(
            self._applied,
            membership=self._membership if self._own.metadata_blocking == CLUSTER else None,
            newest=newest if self._own.metadata_reads == CONTROLLER else None,
            timeout_s=timeout_s,
        )

    def stop(self) -> None:
        """Stop tracking."""
        if self._applied is not None:
            self._applied.stop()


class MetadataUpdates:
    """Applies the active controller's updates to the cache. See controller.term.publish.Peer.

    The controller of this process calls `push` directly. Another controller sends its updates over
    the channel.
    """

    def __init__(
        self,
        delay_ms: int,
        cache: MetadataCache,
        consistency: ReadConsistency,
        log: EventLog,
    ) -> None:
        """`delay_ms` makes this broker lag behind, for tests."""
        self._delay_ms = delay_ms
        self._cache = cache
        self._consistency = consistency
        self._log = log

    def push(self, update: MetadataUpdate, _delay_s: float = 0.0) -> None:
        """Apply an update immediately, or after the configured delay."""
        generation = self._consistency.generation
        if self._delay_ms:
            loop = asyncio.get_running_loop()
            loop.call_later(self._delay_ms / 1000, self._apply, update, generation)
        else:
            self._apply(update, generation)

    def _apply(self, update: MetadataUpdate, generation: int) -> None:
        if self._cache.apply(update) and update.complete:
            self._consistency.update_applied(update.zxid, generation)
            self._log.append(
                ImageAdvanced(zxid=update.zxid, side="broker", epoch=update.controller_epoch)
            )
