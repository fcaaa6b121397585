"""How fresh this broker's answers are: what it tells the controller, and when reads may pass.

KIP-4's ideal (`bridgehead.metadata.blocking=cluster`) and KIP-590's future work
(`bridgehead.metadata.reads=controller`); with neither, a broker answers as Kafka's do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from broker_proxy.apis.base import ClientConnectionInfo
from broker_proxy.settling import NewestZxid, ReadGate, Settling, Standing
from cluster_model.session_state import SessionState

if TYPE_CHECKING:
    from node.node import Node

CLUSTER = "cluster"
CONTROLLER = "controller"


class Freshness:
    """One node's. Told of every update and of the broker session's life."""

    def __init__(self, node: Node, as_asker: Callable[[], ClientConnectionInfo]) -> None:
        own, self._node = node.config.own, node
        self._blocks = own.metadata_blocking == CLUSTER
        self._asks = own.metadata_reads == CONTROLLER
        self._standing = Standing(node.config.broker_id, self._in_touch)
        self._settling: Settling | None = None
        self._as_asker = as_asker
        if self._blocks or self._asks:
            self._settling = Settling(lambda: node.watcher.catch_up(), self._settled)

    def _in_touch(self) -> bool:
        silent_s = time.monotonic() - self._node.watcher.last_word_s
        return silent_s * 1000 < self._node.config.session_timeout_ms * 2 / 3

    @property
    def generation(self) -> int:
        """The registration in which an update comes."""
        return self._standing.generation

    @property
    def applied_zxid(self) -> int:
        """What the controller is told that this broker has applied."""
        return self._node.cache.zxid if self._settling is None else self._settling.zxid

    def applied(self, zxid: int, generation: int) -> None:
        """The cache stands at `zxid`, by an update that came in `generation`."""
        if self._settling is None:
            return
        live = frozenset(self._node.cache.brokers)
        if self._node.config.broker_id not in live:
            self._standing.told(live, generation)  # At once: no more reads.
        self._settling.applied(zxid, partial(self._standing.told, live, generation))

    def _settled(self, zxid: int) -> None:
        node = self._node
        node.controller.own_broker_applied(node.incarnation, zxid)
        node.office.report_applied()

    def registered(self) -> None:
        """The broker session has registered, perhaps again."""
        self._standing.registered()

    def session_changed(self, state: SessionState) -> None:
        """The broker session came or went."""
        if state is SessionState.LOST:
            self._standing.lost()

    def read_gate(self) -> ReadGate | None:
        """Return what reads must pass; None where they are answered as they come."""
        if self._settling is None:
            return None
        node, config = self._node, self._node.config
        newest = NewestZxid(
            node.forwarding.forward,
            self._as_asker(),
            broker_id=config.broker_id,
            request_prefix=f"{config.broker_id}.{node.incarnation}",
        )
        return ReadGate(
            self._settling,
            standing=self._standing if self._blocks else None,
            newest=newest if self._asks else None,
            timeout_s=config.broker.int("request.timeout.ms") / 1000,
        )

    def stop(self) -> None:
        """The node ends."""
        if self._settling is not None:
            self._settling.stop()
