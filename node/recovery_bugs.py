"""Bugs in how nodes react to faults: too early, too late or not at all.

Each is a faulty collaborator of a node, for `node.seeded_bugs`. Production never imports this
module.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final, cast

from bridgehead.kafka_wire.errors import ErrorCode
from broker_proxy.forwarding.manager import ForwardingManager
from broker_proxy.metadata.session import ZooKeeperWatcher
from controller.controller import Controller
from controller.term.publish import Peer
from controller.services import Services, Settings
from controller.store.port import Fence
from controller.store.zookeeper import ZooKeeperStore
from controller.term.term import Term
from envelope.messages import EnvelopeReply

_EARLY_S: Final = 1.0
_TICK_S: Final = 0.05
_LATE_S: Final = 0.1
_IMPATIENT_MS: Final = 200


class AbandoningStore(ZooKeeperStore):
    """leaves_sessions_open: a controller that resigns does not close its session."""

    async def close(self) -> None:
        """See ZooKeeperStore."""


class StayingStore(ZooKeeperStore):
    """stays_at_one_member: its sessions connect only to the last server of zookeeper.connect."""

    def __init__(self, connect: str, **others: Any) -> None:
        super().__init__(connect.rpartition(",")[2], **others)


class _NeverBlocked:
    """Permits every ping."""

    def wait_if_blocked(self, is_stopped: Callable[[], bool]) -> None:
        """See zookeeper_client.session."""


class PingingStore(ZooKeeperStore):
    """pings_while_blocked: the session stays alive while the event loop is blocked."""

    def _new_session(self) -> Any:
        session = cast(Any, super()._new_session())
        session._connection._loop_watch = _NeverBlocked()
        return session


class HastyController(Controller):
    """Resigns without need, or forgets brokers. A subclass names the bugs in `bugs`."""

    bugs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, settings: Settings, services: Services) -> None:
        self._seen = set[int]()  # broker ids
        if "wall_clock_deadlines" in self.bugs:  # jumps of the clock make requests time out
            services = replace(services, now_s=lambda: time.time())
        super().__init__(settings, services)

    async def _load(self, store: ZooKeeperStore, fence: Fence, elected_ms: float) -> Term:
        term = await super()._load(store, fence, elected_ms)
        loop = asyncio.get_running_loop()
        if "resigns_early" in self.bugs:
            loop.call_later(_EARLY_S, self._resign_from, term)
        if "resigns_when_late" in self.bugs:
            loop.call_later(_TICK_S, self._tick, term, loop.time() + _TICK_S)
        return term

    def _tick(self, term: Term, due_s: float) -> None:
        """resigns_when_late: resigns after its process paused, although its session is alive."""
        loop = asyncio.get_running_loop()
        if loop.time() > due_s + _LATE_S:
            self._resign_from(term)
        else:
            loop.call_later(_TICK_S, self._tick, term, loop.time() + _TICK_S)

    def _resign_from(self, term: Term) -> None:
        if self._term is term and self._running is not None:
            self._running.cancel("a seeded bug")

    def connected(self, peer: Peer) -> None:
        """See Controller. forgets_restarted_brokers: a broker's later channels get no metadata."""
        broker_id = cast(Any, peer).hello.broker_id
        if "forgets_restarted_brokers" not in self.bugs or broker_id not in self._seen:
            super().connected(peer)
        self._seen.add(broker_id)


class UnregisteredWatcher(ZooKeeperWatcher):
    """registers_once: a broker that lost its session does not register in its next session."""

    async def _follow_registration(self) -> None:
        if self._registered_in in (None, self._session):
            await super()._follow_registration()


class ImpatientForwarding(ForwardingManager):
    """gives_up_early: a broker waits only 200 ms for the controller's response."""

    def __init__(self, **others: Any) -> None:
        super().__init__(**{**others, "request_timeout_ms": _IMPATIENT_MS})


class UnrepeatingForwarding(ForwardingManager):
    """never_resends: a request whose reply is lost times out at once."""

    async def _attempt(self, *arguments: Any) -> EnvelopeReply | None:
        reply = await super()._attempt(*arguments)
        return EnvelopeReply(ErrorCode.REQUEST_TIMED_OUT, None, 0) if reply is None else reply


FORWARDING: Final[Mapping[str, type[ForwardingManager]]] = {
    "gives_up_early": ImpatientForwarding,
    "never_resends": UnrepeatingForwarding,
}
OF_CONTROLLERS: Final = (
    "forgets_restarted_brokers",
    "resigns_early",
    "resigns_when_late",
    "wall_clock_deadlines",
)
