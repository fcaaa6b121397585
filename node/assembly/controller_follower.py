"""Connects a node to the active controller, or starts an election if there is none.

The broker half of a node learns from ZooKeeper which broker is the active controller; the
controller half is this node's candidate. This module connects the two.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import grpc

from bridgehead.kafka_wire.errors import ErrorCode
from broker_proxy.forwarding.manager import ForwardingManager, KnownController
from broker_proxy.metadata.cache import MetadataCache
from broker_proxy.metadata.session import ControllerAddress
from broker_proxy.migration.kraft_link import KraftLink
from cluster_model.principal import KafkaPrincipal
from cluster_model.session_state import ConnectionLostError
from cluster_model.znodes.values import ZnodeContentError
from controller.controller import Controller
from controller.services import THIS_PROCESS, ControllerState
from envelope.channel import ControllerChannel
from envelope.channel_security import broker_host
from envelope.messages import ApiRanges, Envelope, EnvelopeReply, Hello, MetadataUpdate
from node.assembly.current_state import BrokerState

_log = logging.getLogger(__name__)
_NEXT_ELECTION_S: Final = 0.2
# After the first error, and after many. A repair by hand takes effect after the longest pause.
_AFTER_ERROR_S: Final = 0.5
_AFTER_ERROR_MAX_S: Final = 3.0
_RECONNECT_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class _OwnBroker:
    """This node's broker as a sender of Envelopes to the controller in the same process."""

    state: BrokerState
    principal: KafkaPrincipal
    host: str = THIS_PROCESS
    connection_id: None = None

    @property
    def hello(self) -> Hello:
        return self.state.hello()


class LocalLink:
    """Sends Envelopes to the controller in this process, without a network in between."""

    def __init__(
        self, controller: Controller, state: BrokerState, principal: KafkaPrincipal
    ) -> None:
        self._controller = controller
        self._sender = _OwnBroker(state, principal)
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, envelope: Envelope) -> asyncio.Future[EnvelopeReply]:
        future: asyncio.Future[EnvelopeReply] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            try:
                reply = await self._controller.handle(envelope, self._sender)
            except Exception:  # The outcome is unknown, as in envelope/server.py.
                _log.exception("handling %s failed unexpectedly", envelope.request_id)
                reply = EnvelopeReply(int(ErrorCode.UNKNOWN_SERVER_ERROR), None, 0)
            if not future.done():
                future.set_result(reply)

        task = asyncio.create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return future


class ControllerFollower:
    """Sets the target of forwarding; starts an election if there is no active controller."""

    def __init__(
        self,
        *,
        state: BrokerState,
        controller: Controller,
        forwarding: ForwardingManager,
        cache: MetadataCache,
        on_update: Callable[[MetadataUpdate], None],
        applied_zxid: Callable[[], int],
        is_registered: Callable[[int], Awaitable[bool]],
        read_controller_id: Callable[[], Awaitable[int | None]],
        pinned: int | None,
        principal: KafkaPrincipal,
        credentials: grpc.ChannelCredentials | None,
        new_channel: Callable[..., ControllerChannel] = ControllerChannel,
        kraft: KraftLink | None = None,
    ) -> None:
        """While broker `pinned` is registered, only it may become active; None: any broker may.

        `kraft` is the link to the KRaft controller of a broker that migrates.
        """
        self._broker_id = state.broker_id
        self._controller = controller
        self._forwarding = forwarding
        self._cache = cache
        self._hello = state.hello
        self._on_update = on_update
        self._applied_zxid = applied_zxid
        self._is_registered = is_registered
        self._read_controller_id = read_controller_id
        self._pinned = pinned
        self._local = LocalLink(controller, state, principal)
        self._credentials = credentials
        self._new_channel = new_channel
        self._kraft = kraft
        self._forwards_to_kraft = False
        self._known: ControllerAddress | None = None
        self._reports = 0
        self._channel: ControllerChannel | None = None
        self._ranges: ApiRanges = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_electing = False
        self._is_withdrawn = False
        self._last_failure = ""
        self._stopped = False

    @property
    def controller_id(self) -> int | None:
        """The active controller according to ZooKeeper."""
        return self._known.broker_id if self._known else None

    @property
    def election_problem(self) -> str | None:
        """Why this node cannot take part in elections; None if it can, or has not tried."""
        return self._last_failure or None

    @property
    def is_controller(self) -> bool:
        """True when ZooKeeper names this broker as the active controller."""
        return self._known is not None and self._is_this_broker(self._known)

    def _is_this_broker(self, controller: ControllerAddress) -> bool:
        return controller.broker_id == self._broker_id and not controller.is_kraft

    @property
    def controller_ranges(self) -> ApiRanges:
        """The versions that another node's controller accepts; empty until it has sent them."""
        if self._forwards_to_kraft and self._kraft is not None:
            return self._kraft.api_ranges
        return self._ranges

    def report_applied(self) -> None:
        """Report the applied zxid to the controller, if it runs in another node."""
        if self._channel is not None:
            self._channel.report()

    def _received(self, channel: ControllerChannel, update: MetadataUpdate) -> None:
        if channel is self._channel:  # Updates of an earlier channel are outdated.
            self._on_update(update)

    def _welcomed(self, channel: ControllerChannel, ranges: ApiRanges) -> None:
        if channel is self._channel:
            self._ranges = ranges

    def controller_changed(self, controller: ControllerAddress | None) -> None:
        """Connect to a new controller; None: there is no controller."""
        if self._stopped:
            return
        self._known = controller
        self._reports += 1
        self._close_channel()
        self._forwards_to_kraft = False
        if controller is not None and self._is_this_broker(controller):
            self._forwarding.set_target(
                KnownController(self._local, self._broker_id, is_local=True)
            )
            return
        self._forwarding.set_target(None)
        if self._controller.state is ControllerState.STANDBY:
            self._follow(controller)
        else:
            self._start(self._resign_and_follow(controller))

    async def _resign_and_follow(self, controller: ControllerAddress | None) -> None:
        """Resign first: this node must not be active while it forwards to another controller."""
        if await self._is_elected():
            return  # The watch on /controller will report this broker.
        await self._controller.superseded()
        if self._known == controller and self._channel is None and not self._stopped:
            self._follow(controller)

    async def _is_elected(self) -> bool:
        """Return whether /controller names this broker now.

        The last report about /controller does not show this. It may be older than this broker's
        election, because the broker session and the controller session may be connected to
        different members of the ensemble. A reported deletion may have come before or after the
        election.
        """
        try:
            return await self._read_controller_id() == self._broker_id
        except ConnectionLostError:
            return False

    def _follow(self, controller: ControllerAddress | None) -> None:
        if controller is None:
            self._start_election()
        elif controller.is_kraft:
            self.forward_to_kraft()
        elif controller.node is not None:  # Otherwise the address is reported later.
            self._open_channel(controller)

    @property
    def forwards_to_kraft(self) -> bool:
        """True while requests are forwarded to a KRaft controller."""
        return self._forwards_to_kraft

    def forward_to_kraft(self) -> None:
        """Forward to the KRaft controller, if both /controller and the last update name one.

        In Kafka the update alone decides. If /controller is deleted while the KRaft controller
        runs, Kafka's brokers forward writes that never reach ZooKeeper; here they wait.
        """
        controller, cache = self._known, self._cache
        both = controller is not None and controller.is_kraft and cache.controller_is_kraft
        if both and self._kraft is not None and not self._forwards_to_kraft:
            self._forwards_to_kraft = True
            target = KnownController(self._kraft, cache.controller_id, is_local=False)
            self._forwarding.set_target(target)

    def pin(self, broker_id: int | None) -> None:
        """While this broker id is registered, let only it become active; None: any broker."""
        self._pinned = broker_id
        self.resign_for_pinned()
        if self._known is None:
            self._start_election()

    def _start_election(self) -> None:
        if not self._is_electing and not self._is_withdrawn:
            self._is_electing = True
            self._start(self._elect())

    async def _elect(self) -> None:
        pause_s = _AFTER_ERROR_S
        try:
            while self._known is None and not self._is_withdrawn:
                try:
                    if await self._is_eligible():
                        before = self._reports
                        await self._controller.elect()
                        if self._reports > before:
                            await self._check_election()
                except Exception as error:  # For example, /controller_epoch has invalid content.
                    self._election_failed(error)
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, _AFTER_ERROR_MAX_S)
                else:
                    self._last_failure, pause_s = "", _AFTER_ERROR_S
                # The watch reports the winner. Until it has, try again: the winner may have failed.
                await asyncio.sleep(_NEXT_ELECTION_S)
        finally:
            self._is_electing = False

    async def _check_election(self) -> None:
        """Act on the changes of /controller that were reported while the election was running."""
        if not self.is_controller and not await self._is_elected():
            await self._controller.superseded()

    def _election_failed(self, error: Exception) -> None:
        """Log the cause, unless the previous election failed for the same cause."""
        is_expected = isinstance(error, ConnectionLostError | ZnodeContentError)
        cause = str(error) if is_expected else f"{type(error).__name__}: {error}"
        if cause != self._last_failure:
            text = "could not take part in the controller election: %s"
            _log.warning(text, cause, exc_info=None if is_expected else error)
        self._last_failure = cause

    async def _is_eligible(self) -> bool:
        pinned = self._pinned
        if pinned is None or pinned == self._broker_id:
            return True
        return not await self._is_registered(pinned)

    def resign_for_pinned(self) -> None:
        """Resign when another broker is pinned and alive."""
        pinned = self._pinned
        if self.is_controller and pinned != self._broker_id and pinned in self._cache.brokers:
            self._start(self._controller.resign(f"the controller is pinned to broker {pinned}"))

    def _open_channel(self, controller: ControllerAddress) -> None:
        assert controller.node is not None
        channel: ControllerChannel = self._new_channel(
            controller.node.grpc,
            self._hello(),
            on_update=lambda update: self._received(channel, update),
            on_closed=lambda: self._channel_closed(controller),
            lowest_unfinished=lambda: self._forwarding.lowest_unfinished,
            applied_zxid=self._applied_zxid,
            on_welcome=lambda ranges: self._welcomed(channel, ranges),
            credentials=self._credentials,
            server_name=broker_host(controller.broker_id),
        )
        self._channel = channel
        self._forwarding.set_target(KnownController(channel, controller.broker_id, is_local=False))

    def _channel_closed(self, controller: ControllerAddress) -> None:
        if self._known == controller and self._channel is not None and not self._stopped:
            self._channel = None
            self._forwarding.set_target(None)
            self._start(self._reconnect(controller))

    async def _reconnect(self, controller: ControllerAddress) -> None:
        await asyncio.sleep(_RECONNECT_S)
        if self._known == controller and self._channel is None and not self._stopped:
            self._open_channel(controller)

    def registered(self, _epoch: int) -> None:
        """Reconnect after a new registration, to receive the full image."""
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

    def withdraw(self) -> None:
        """Take part in no more elections: this node is about to stop."""
        self._is_withdrawn = True

    async def stop(self) -> None:
        """Close the channel and take part in no more elections."""
        self.withdraw()
        self._stopped = True
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()
