"""Follows the controller: whom to forward to, and when to stand for office oneself.

The broker half of a node learns from ZooKeeper who is controller; the controller half is this
node's candidate. Here both meet: nobody in office means standing, somebody means a link to them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import grpc

from broker_proxy.forwarding import ForwardingManager, Target
from broker_proxy.metadata_cache import MetadataCache
from broker_proxy.watcher import ControllerAddress
from cluster_model.principal import KafkaPrincipal
from cluster_model.session_state import ConnectionLostError
from controller.controller import Controller
from controller.services import THIS_PROCESS
from envelope.channel import ControllerChannel
from envelope.channel_security import broker_host
from envelope.messages import ApiRanges, Envelope, EnvelopeAnswer, Hello, MetadataUpdate

_log = logging.getLogger(__name__)
_STAND_AGAIN_S: Final = 0.2
_RECONNECT_S: Final = 0.1


class _OwnBroker:
    """This node's broker as a sender of Envelopes to the controller in the same process."""

    def __init__(self, hello: Callable[[], Hello], principal: KafkaPrincipal) -> None:
        self._hello = hello
        self._principal = principal

    @property
    def hello(self) -> Hello:
        return self._hello()

    @property
    def principal(self) -> KafkaPrincipal:
        return self._principal

    @property
    def host(self) -> str:
        return THIS_PROCESS

    @property
    def connection_id(self) -> None:
        return None


class LocalLink:
    """The way to the controller in this very process: same identity, same checks, no wire."""

    def __init__(
        self, controller: Controller, hello: Callable[[], Hello], principal: KafkaPrincipal
    ) -> None:
        self._controller = controller
        self._sender = _OwnBroker(hello, principal)
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, envelope: Envelope) -> asyncio.Future[EnvelopeAnswer]:
        """See ControllerLink."""
        future: asyncio.Future[EnvelopeAnswer] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            answer = await self._controller.handle(envelope, self._sender)
            if not future.done():
                future.set_result(answer)

        task = asyncio.create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return future


class OfficeFollower:
    """Keeps the forwarding target right, and has this node stand when nobody is in office."""

    def __init__(
        self,
        *,
        broker_id: int,
        controller: Controller,
        forwarding: ForwardingManager,
        cache: MetadataCache,
        hello: Callable[[], Hello],
        on_update: Callable[[MetadataUpdate], None],
        applied_zxid: Callable[[], int],
        is_registered: Callable[[int], Awaitable[bool]],
        pinned: int | None,
        principal: KafkaPrincipal,
        credentials: grpc.ChannelCredentials | None,
    ) -> None:
        self._broker_id = broker_id
        self._controller = controller
        self._forwarding = forwarding
        self._cache = cache
        self._hello = hello
        self._on_update = on_update
        self._applied_zxid = applied_zxid
        self._is_registered = is_registered
        self.pinned = pinned
        self._local = LocalLink(controller, hello, principal)
        self._credentials = credentials
        self._known: ControllerAddress | None = None
        self._channel: ControllerChannel | None = None
        self._ranges: ApiRanges = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._standing = False
        self._stopped = False

    @property
    def controller_id(self) -> int | None:
        """Who is controller, as ZooKeeper says."""
        return self._known.broker_id if self._known else None

    @property
    def controller_ranges(self) -> ApiRanges:
        """What another node's controller says that it can be asked; nothing while unknown."""
        return self._ranges

    def report_applied(self) -> None:
        """Tell another node's controller what this broker has applied by now."""
        if self._channel is not None:
            self._channel.report()

    def _received(self, channel: ControllerChannel, update: MetadataUpdate) -> None:
        if channel is self._channel:  # What comes down an older one is from before.
            self._on_update(update)

    def _welcomed(self, ranges: ApiRanges) -> None:
        self._ranges = ranges

    def controller_changed(self, controller: ControllerAddress | None) -> None:
        """ZooKeeper says who is controller now; None: nobody."""
        if self._stopped:
            return
        self._known = controller
        self._close_channel()
        if controller is None:
            self._forwarding.set_target(None)
            self.consider_standing()
        elif controller.broker_id == self._broker_id:
            self._forwarding.set_target(Target(self._local, self._broker_id, is_local=True))
        elif controller.node is None:
            self._forwarding.set_target(None)  # Its address follows.
        else:
            self._open_channel(controller)

    def consider_standing(self) -> None:
        """Stand for controller, unless somebody is in office or another one is wanted there."""
        if not self._standing and not self._stopped:
            self._standing = True
            self._start(self._stand())

    async def _stand(self) -> None:
        try:
            while self._known is None and not self._stopped:
                try:
                    if await self._may_stand():
                        await self._controller.stand()
                except ConnectionLostError as lost:
                    _log.warning("could not stand for controller: %s", lost)
                # Whether won or lost, ZooKeeper's word about it comes by the watch; if the
                # winner is gone again before that, somebody has to stand once more.
                await asyncio.sleep(_STAND_AGAIN_S)
        finally:
            self._standing = False

    async def _may_stand(self) -> bool:
        wanted = self.pinned
        if wanted is None or wanted == self._broker_id:
            return True
        return not await self._is_registered(wanted)

    def make_way(self) -> None:
        """Resign when another broker is pinned and has come."""
        wanted = self.pinned
        in_office = self.controller_id == self._broker_id
        if in_office and wanted != self._broker_id and wanted in self._cache.brokers:
            self._start(self._controller.resign(f"broker {wanted} shall be controller"))

    def _open_channel(self, controller: ControllerAddress) -> None:
        assert controller.node is not None
        channel = ControllerChannel(
            controller.node.grpc,
            self._hello(),
            on_update=lambda update: self._received(channel, update),
            on_closed=lambda: self._channel_closed(controller),
            lowest_unfinished=lambda: self._forwarding.lowest_unfinished,
            applied_zxid=self._applied_zxid,
            on_welcome=self._welcomed,
            credentials=self._credentials,
            server_name=broker_host(controller.broker_id),
        )
        self._channel = channel
        self._forwarding.set_target(Target(channel, controller.broker_id, is_local=False))

    def _channel_closed(self, controller: ControllerAddress) -> None:
        if self._known == controller and self._channel is not None and not self._stopped:
            self._channel = None
            self._forwarding.set_target(None)
            self._start(self._reconnect(controller))

    async def _reconnect(self, controller: ControllerAddress) -> None:
        await asyncio.sleep(_RECONNECT_S)
        if self._known == controller and self._channel is None and not self._stopped:
            self._open_channel(controller)

    def reopen_channel(self) -> None:
        """The broker has registered anew: the controller must hear its new epoch."""
        if self._channel is not None and self._known is not None:
            self.controller_changed(self._known)

    def _close_channel(self) -> None:
        channel, self._channel = self._channel, None
        self._ranges = {}
        if channel is not None:
            self._start(channel.close())

    def _start(self, step: object) -> None:
        task = asyncio.ensure_future(step)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Close the channel; stand no more."""
        self._stopped = True
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()
