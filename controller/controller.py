"""A node's candidate for controller.

    standby -> claiming -> loading -> active -> standby

When a candidacy ends, its controller session is closed, so a standby cannot write. The next
candidacy opens a new session. Exception: to create missing paths at start, a node opens the session
of its first candidacy early.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from bridgehead.kafka_wire.apis import DRAFTED_SPECS
from cluster_model.image import MetadataImage
from cluster_model.principal import KafkaPrincipal
from cluster_model.quirks import DENIAL_DUMPS_REQUEST
from cluster_model.session_state import ConnectionLostError, SessionLostError, SessionState
from cluster_model.znodes.values import ZnodeContentError
from controller.envelopes.denial_dumps import with_denial_dumps
from controller.envelopes.handle import EnvelopeHandler
from controller.envelopes.open import (
    OpenedEnvelope,
    OpenEnvelope,
    RejectedEnvelope,
    open_envelope,
)
from controller.loop.loop import ControllerLoop
from controller.services import ControllerState, Peer, Sender, Services, Settings
from controller.store.load import load
from controller.store.port import ControllerMovedError, Fence, UnknownOutcomeError
from controller.store.zookeeper import ZooKeeperStore
from controller.term.external_writes import ExternalWrites
from controller.term.publish import Publisher
from controller.term.term import Term
from envelope.messages import ApiRanges, Envelope, EnvelopeReply, Hello
from event_log.events import BecameActive, ChannelRejected, Resigned

_log = logging.getLogger(__name__)
# A candidate rests after a term that failed unexpectedly: another one would probably fail as well.
# A repair by hand then takes effect after the longest rest at the latest.
# The errors after which the next controller may serve at once.
_EXPECTED: Final = (ConnectionLostError, ControllerMovedError, UnknownOutcomeError)
_FIRST_REST_S: Final = 0.5
_REST_MAX_S: Final = 16.0
# A term that lasted longer than this was not ended by what it began with.
_LASTING_S: Final = 60.0


class Controller:
    """Takes part in elections, and handles Envelopes and channels. Runs a Term while active."""

    def __init__(self, settings: Settings, services: Services) -> None:
        self._settings = settings
        self._services = services
        self._state = ControllerState.STANDBY
        self._store: ZooKeeperStore | None = None
        self._fence: Fence | None = None
        self._term: Term | None = None
        # `_running` runs the term. `_serving` waits for it, cleans up and returns to standby. Only
        # `_running` may be cancelled. It does not clean up, because a task that is cancelled before
        # its first step runs none of its code.
        self._running: asyncio.Task[None] | None = None
        self._serving: asyncio.Task[None] | None = None
        self._publisher = Publisher(
            settings.broker_id, services.own_broker, settings.update_delay_s
        )
        self._envelopes = EnvelopeHandler(services, _opener(services), self._brokers_changed)
        self.external_writes = ExternalWrites()
        self._next_rest_s = _FIRST_REST_S
        self._rests_until_s = 0.0

    @property
    def state(self) -> ControllerState:
        """The candidate's state."""
        return self._state

    @property
    def epoch(self) -> int:
        """The controller epoch of this term; 0 on standby."""
        return self._fence.epoch if self._fence else 0

    @property
    def api_ranges(self) -> ApiRanges:
        """The lowest and highest version that an Envelope may carry, by API key."""
        specs = [DRAFTED_SPECS[key] for key in self._services.apis]
        return {spec.key: (spec.min_version, spec.max_version) for spec in specs}

    @property
    def queue_length(self) -> int:
        """Number of undecided requests; 0 on standby."""
        return self._term.loop.queue_length if self._term else 0

    @property
    def skipped_znodes(self) -> tuple[str, ...]:
        """The errors of the znodes that this term skips; empty on standby."""
        return self._term.skipped.errors if self._term else ()

    @property
    def image(self) -> MetadataImage | None:
        """The image if this candidate is the active controller, else None."""
        loop = self._active_loop()
        return loop.image if loop else None

    def _active_loop(self) -> ControllerLoop | None:
        is_active = self._state is ControllerState.ACTIVE
        return self._term.loop if self._term and is_active else None

    def _enter(self, state: ControllerState) -> None:
        self._state = state
        if state in (ControllerState.CLAIMING, ControllerState.LOADING):
            self._envelopes.close()
        else:
            self._envelopes.open(self._active_loop())
        self._services.state_changed(state)

    async def prepare(self, cluster_id: str) -> str:
        """Open the controller session and create the persistent paths; return the cluster id.

        Raises:
            ConnectionLostError: the connection broke. It is safe to call this method again.
        """
        store = await self._open_store()
        try:
            return await store.ensure_start_up_paths(cluster_id, self._settings.start_up_paths)
        except SessionLostError:
            await self._return_to_standby()  # The next call opens another session.
            raise

    async def _open_store(self) -> ZooKeeperStore:
        if self._store is None:
            store = self._services.new_store(self._session_changed)
            await store.open(self._settings.connection_timeout_ms / 1000)
            self._store = store
        return self._store

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.LOST and self._running:
            self._running.cancel("the ZooKeeper session is lost")
        elif state is SessionState.CONNECTED and self._term is not None:
            self._term.set_watches()  # Watches do not survive a reconnect.

    def _brokers_changed(self) -> None:
        if self._term is not None:
            self._term.brokers_changed()

    async def elect(self) -> bool:
        """Try to become the active controller. Returns True if elected; a task then runs the term.

        After an unexpected error this candidate takes part in no election for a while, which
        doubles with each error. It then returns False.

        Raises:
            ConnectionLostError: the connection broke before the election was decided.
            ZnodeContentError: /controller_epoch has invalid content.
        """
        if self._serving is not None:
            return True
        began_s = self._services.now_s()
        if began_s < self._rests_until_s:
            return False
        self._enter(ControllerState.CLAIMING)
        try:
            store = await self._open_store()
            fence = await store.elect(self._settings.broker_id, self._services.now_ms())
        except BaseException as error:
            if isinstance(error, Exception) and not isinstance(
                error, (*_EXPECTED, ZnodeContentError)
            ):
                self._rest(began_s)
            await self._return_to_standby()
            raise
        if fence is None:
            await self._return_to_standby()
            return False
        self._fence = fence
        elected_ms = (self._services.now_s() - began_s) * 1000
        self._enter(ControllerState.LOADING)
        self._running = asyncio.create_task(self._run(store, fence, elected_ms))
        self._serving = asyncio.create_task(self._serve(self._running, fence, began_s))
        return True

    def _rest(self, began_s: float) -> None:
        """Rest after a candidacy, begun at `began_s`, that ended with an unexpected error."""
        now_s = self._services.now_s()
        if now_s - began_s > _LASTING_S:
            self._next_rest_s = _FIRST_REST_S
        self._rests_until_s = now_s + self._next_rest_s
        self._next_rest_s = min(2 * self._next_rest_s, _REST_MAX_S)

    async def _return_to_standby(self) -> None:
        store, self._store = self._store, None
        self._fence = None
        self._enter(ControllerState.STANDBY)
        if store is not None:
            await store.close()

    async def resign(self, reason: str) -> None:
        """Return to standby. Every pending request is answered with NOT_CONTROLLER."""
        if self._running is not None and self._serving is not None:
            self._running.cancel(reason)
            await asyncio.wait([self._serving])
        elif self._store is not None:
            await self._return_to_standby()

    async def superseded(self) -> None:
        """Resign if active or loading: /controller is gone or names another broker."""
        if self._serving is not None:
            await self.resign("/controller no longer names this broker")

    async def expire(self) -> None:
        """Make ZooKeeper expire the controller session (for chaos runs)."""
        if self._store is not None:
            await self._store.expire()

    async def _run(self, store: ZooKeeperStore, fence: Fence, elected_ms: float) -> None:
        """Load the state, then run the loop until this controller resigns."""
        term = await self._load(store, fence, elected_ms)
        await term.loop.run()

    async def _serve(self, running: asyncio.Task[None], fence: Fence, began_s: float) -> None:
        """Return to standby when the term has ended."""
        await asyncio.wait([running])
        reason = ""
        try:
            running.result()
        except asyncio.CancelledError as cancelled:
            reason = str(cancelled) or "the node stops"
        except Exception as exception:
            reason = f"{type(exception).__name__}: {exception}"
            if isinstance(exception, ZnodeContentError):
                _log.error("controller epoch %d ends: %s", fence.epoch, exception)
            elif not isinstance(exception, _EXPECTED):
                _log.exception("an unexpected error ends controller epoch %d", fence.epoch)
            if not isinstance(exception, _EXPECTED):
                self._rest(began_s)
        ended, self._term, self._running, self._serving = self._term, None, None, None
        self._envelopes.open(None)
        if ended is not None:
            ended.end()
            self.external_writes.stop()
        self._services.log.append(Resigned(epoch=fence.epoch, reason=reason))
        await self._return_to_standby()

    async def _load(self, store: ZooKeeperStore, fence: Fence, elected_ms: float) -> Term:
        services = self._services
        began_s = services.now_s()
        known_states = services.known_states
        # A KRaft controller writes states without our commits.
        has_commits = not known_states.controller_is_kraft
        is_current = has_commits and known_states.zxid >= fence.last_commit_zxid
        loaded = await load(store.read, fence.epoch, known_states if is_current else None)
        term = self._term = Term(self._settings, services, store, fence, loaded, self._publisher)
        self.external_writes.start(term.loop, store.read, term.skipped)
        await term.start()
        services.log.append(
            BecameActive(
                epoch=fence.epoch,
                epoch_zk_version=fence.zk_version,
                zxid=fence.zxid,
                elected_ms=elected_ms,
                loaded_ms=(services.now_s() - began_s) * 1000,
            )
        )
        self._enter(ControllerState.ACTIVE)
        return term

    async def handle(self, envelope: Envelope, sender: Sender) -> EnvelopeReply:
        """Handle one Envelope; see EnvelopeHandler."""
        return await self._envelopes.handle(envelope, sender)

    # --- Channels ------------------------------------------------------------------------

    def connected(self, peer: Peer) -> None:
        """A broker opened a channel; see Publisher."""
        self._publisher.connected(peer)
        if self._term is not None:
            self._term.push_parts()

    def disconnected(self, peer: Peer) -> None:
        """A channel closed."""
        self._publisher.disconnected(peer)

    def rejected(self, hello: Hello, principal: KafkaPrincipal | None, reason: str) -> None:
        """A channel was rejected: its certificate does not name the broker that its Hello names."""
        name = None if principal is None else str(principal)
        _log.warning("rejected a channel: %s (%s)", reason, name or "no principal")
        self._services.channel_rejected()
        self._services.log.append(
            ChannelRejected(broker_id=hello.broker_id, principal=name, reason=reason)
        )

    def batch_received(self, peer: Sender, lowest_unfinished: int, applied_zxid: int) -> None:
        """A broker reported its lowest unfinished sequence and the zxid that it has applied."""
        if self._term is not None:
            incarnation = peer.hello.broker_id, peer.hello.incarnation
            self._term.loop.outcomes.raise_floor(incarnation, lowest_unfinished)
            self._term.loop.applied(*incarnation, applied_zxid)

    def own_broker_applied(self, incarnation: str, zxid: int) -> None:
        """The broker of this node has applied `zxid`."""
        if self._term is not None:
            self._term.loop.applied(self._settings.broker_id, incarnation, zxid)


def _opener(services: Services) -> OpenEnvelope:
    def opened(envelope: Envelope, _: Sender) -> OpenedEnvelope | RejectedEnvelope:
        return open_envelope(envelope, services.serde, services.apis)

    if DENIAL_DUMPS_REQUEST in services.quirks:
        return with_denial_dumps(opened, services.random)
    return opened
