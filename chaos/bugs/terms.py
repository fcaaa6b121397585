"""Bugs of the beginning and the end of a controller's term, and of its session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Final, cast

from chaos.bugs.bug import Bug, KafkaBug, Run, part, services
from cluster_model.znodes.layout import ControllerZnode
from cluster_model.znodes.operations import Delete
from controller.controller import Controller
from controller.loop.loop import ControllerLoop
from controller.services import Sender, Services, Settings
from controller.store.port import Fence
from controller.store.zookeeper import ZooKeeperStore
from controller.term.term import Term
from envelope.messages import Envelope, EnvelopeReply

_POLL_S: Final = 0.01
_EARLY_S: Final = 1.0
_TICK_S: Final = 0.05
_LATE_S: Final = 0.1


# --- After the term ------------------------------------------------------------------------------


class _ActsLate(Controller):
    """A controller that still does something after it has resigned."""

    def __init__(self, settings: Settings, services: Services) -> None:
        self._late = set[asyncio.Task[Any]]()
        super().__init__(settings, services)

    async def _return_to_standby(self) -> None:
        was_elected = self._fence is not None
        await super()._return_to_standby()
        if was_elected:
            self._start(self._act())

    def _start(self, late: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(late)
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _act(self) -> None:
        raise NotImplementedError


class _ActsAfterResigning(_ActsLate):
    """Processes one more Envelope in the loop of the former term."""

    _last_loop: ControllerLoop | None = None
    _newest: tuple[Envelope, Sender] | None = None

    async def handle(self, envelope: Envelope, sender: Sender) -> EnvelopeReply:
        if self._term is not None:
            self._newest = envelope, sender
        return await super().handle(envelope, sender)

    async def _load(self, store: ZooKeeperStore, fence: Fence, elected_ms: float) -> Term:
        term = await super()._load(store, fence, elected_ms)
        self._last_loop = term.loop
        return term

    async def _act(self) -> None:
        if self._last_loop is None or self._newest is None:
            return
        self._envelopes.open(self._last_loop)
        self._start(self._last_loop.run())
        self._start(self._envelopes.handle(*self._newest))
        await asyncio.sleep(0)  # until the Envelope is in the loop
        self._envelopes.open(None)


class _DeletesSuccessorsZnode(_ActsLate):
    async def _act(self) -> None:
        store = self._services.new_store(lambda _: None)
        await store.open(self._settings.connection_timeout_ms / 1000)
        while await store._session.exists(ControllerZnode.path) is None:
            await asyncio.sleep(_POLL_S)
        await store._session.multi([store.encode(Delete(ControllerZnode.path))])
        await store.close()


class _ReusesImage(Controller):
    _former: ControllerLoop | None = None

    async def _load(self, store: ZooKeeperStore, fence: Fence, elected_ms: float) -> Term:
        former = self._former
        term = await super()._load(store, fence, elected_ms)
        if former is not None:
            term.loop.image = replace(former.image, zxid=term.loop.image.zxid)
        self._former = term.loop
        return term


# --- The end of the term -------------------------------------------------------------------------


class _ResignsEarly(Controller):
    async def _load(self, store: ZooKeeperStore, fence: Fence, elected_ms: float) -> Term:
        term = await super()._load(store, fence, elected_ms)
        asyncio.get_running_loop().call_later(_EARLY_S, self._resign_from, term)
        return term

    def _resign_from(self, term: Term) -> None:
        if self._term is term and self._running is not None:
            self._running.cancel("a seeded bug")


class _ResignsWhenLate(Controller):
    async def _load(self, store: ZooKeeperStore, fence: Fence, elected_ms: float) -> Term:
        term = await super()._load(store, fence, elected_ms)
        self._tick_later(term)
        return term

    def _tick_later(self, term: Term) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(_TICK_S, self._tick, term, loop.time() + _TICK_S)

    def _tick(self, term: Term, due_s: float) -> None:
        if asyncio.get_running_loop().time() <= due_s + _LATE_S:
            self._tick_later(term)
        elif self._term is term and self._running is not None:
            self._running.cancel("a seeded bug")


def _with_wall_clock(services: Services) -> Services:
    return replace(services, now_s=lambda: time.time())


# --- The session ---------------------------------------------------------------------------------


class _AbandoningStore(ZooKeeperStore):
    async def close(self) -> None:
        pass


class _StayingStore(ZooKeeperStore):
    def __init__(self, connect: str, **others: Any) -> None:
        super().__init__(connect.rpartition(",")[2], **others)


class _NeverBlocked:
    """Permits every ping."""

    def wait_if_blocked(self, is_stopped: Callable[[], bool]) -> None:
        pass


class _PingingStore(ZooKeeperStore):
    def _new_session(self) -> Any:
        session = cast(Any, super()._new_session())
        session._connection._loop_watch = _NeverBlocked()
        return session


BUGS: Final[tuple[Bug, ...]] = (
    KafkaBug(
        name="deletes_successors_znode",
        does="A controller that has resigned deletes the /controller of its successor.",
        apply=part("controller", _DeletesSuccessorsZnode),
        found_by="W5, L7",
        issue="KAFKA-6082, second part",
        happened="A controller that had been replaced deleted the /controller of its successor. "
        "This caused another election.",
        run=Run(scenario="session_stolen_in_large_request", found_by=("W5", "L7")),
    ),
    KafkaBug(
        name="acts_after_resigning",
        does="A controller that has resigned processes one more request.",
        apply=part("controller", _ActsAfterResigning),
        found_by="W7",
        issue="KAFKA-4447, KAFKA-2300",
        happened="A controller that had resigned still processed requests.",
        run=Run(scenario="sessions_flap", found_by=("W7",)),
    ),
    KafkaBug(
        name="reuses_image",
        does="A controller that is elected again uses the image of its earlier term.",
        apply=part("controller", _ReusesImage),
        found_by="W7",
        issue="KAFKA-5310",
        happened="A controller that was elected again used the state of its earlier term.",
        run=Run(scenario="sessions_flap", found_by=("W7",)),
    ),
    Bug(
        name="resigns_early",
        does="A controller resigns one second after its election.",
        apply=part("controller", _ResignsEarly),
        found_by="the number of elections",
    ),
    Bug(
        name="resigns_when_late",
        does="A controller resigns after its process paused, although its session is alive.",
        apply=part("controller", _ResignsWhenLate),
        found_by="the number of elections",
    ),
    Bug(
        name="wall_clock_deadlines",
        does="Time limits of the controller use the wall clock, so its jumps end requests.",
        apply=services(_with_wall_clock),
        found_by="unknown outcomes",
    ),
    Bug(
        name="leaves_sessions_open",
        does="A controller that resigns does not close its session.",
        apply=part("store", _AbandoningStore),
        found_by="a long time without a success",
    ),
    Bug(
        name="pings_while_blocked",
        does="The controller's session stays alive while the event loop is blocked.",
        apply=part("store", _PingingStore),
        found_by="no controller replaces the blocked controller",
    ),
    Bug(
        name="stays_at_one_member",
        does="The controller's sessions connect only to the last server of zookeeper.connect.",
        apply=part("store", _StayingStore),
        found_by="no further acknowledgements",
    ),
)
