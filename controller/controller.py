"""One candidate for controller: stands, loads, works, resigns; and answers Envelopes meanwhile.

    standby -> claiming -> loading -> active -> standby

An Envelope that comes while the state is loaded waits; on standby it is answered NOT_CONTROLLER.
The ZooKeeper session with the right to write exists from candidacy to resignation only
(design 5.1), so that whoever is not controller could not write if it wanted to.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from itertools import chain
from typing import Final

from bridgehead.kafka_wire.dialects import DRAFTED_SPECS
from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.image import MetadataImage
from cluster_model.principal import KafkaPrincipal
from cluster_model.session_state import ConnectionLostError, SessionState
from cluster_model.znode_operations import Create
from cluster_model.znodes import FeatureZnode
from controller.background import (
    Job,
    complete_reassignments,
    delete_topics,
    remove_expired_tokens,
    sweep,
    tidy_up,
)
from controller.foreign_writes import ForeignWrites
from controller.handle_envelope import EnvelopeDesk
from controller.loop import ControllerLoop
from controller.mutation_quotas import MutationQuotas
from controller.notifications import purge_notifications
from controller.pruning import Pruning
from controller.publish import Peer, Publisher
from controller.rulings import rule_on
from controller.services import Office, Sender, Services, Settings
from controller.shell import Shell
from controller.store.load import load, load_brokers
from controller.store.port import Fence, Mutant
from controller.store.zookeeper import ZooKeeperStore
from envelope.messages import ApiRanges, Envelope, EnvelopeAnswer, Hello
from event_log.connections import ChannelRefused
from event_log.events import BecameActive, Resigned

_log = logging.getLogger(__name__)
_PRUNE_EVERY_S: Final = 1.0
_PURGE_EVERY_S: Final = 60.0
_NOT_CONTROLLER: Final = EnvelopeAnswer(int(ErrorCode.NOT_CONTROLLER), None, 0)


class Controller:
    """A node's candidate. See the module for its life."""

    def __init__(self, settings: Settings, services: Services) -> None:
        self._settings = settings
        self._services = services
        self._store: ZooKeeperStore | None = None
        self._loop: ControllerLoop | None = None
        self._publisher = Publisher(settings.broker_id, services.own_broker)
        self._office = Office.STANDBY
        self._desk = EnvelopeDesk(
            services,
            in_office=lambda: self._loop if self._office is Office.ACTIVE else None,
            brokers_may_have_changed=self._brokers_changed,
        )
        self._term: asyncio.Task[None] | None = None
        self._fence: Fence | None = None
        self._elected_ms = 0.0
        self._sweep: Job | None = None
        self.foreign = ForeignWrites(
            lambda: self._loop, lambda: self._store.read if self._store is not None else None
        )
        self._pruning = Pruning(settings.request_timeout_ms + settings.session_timeout_ms)

    @property
    def _is_zombie(self) -> bool:
        """Seeded: a lost session ends nobody's term."""
        return bool(self._services.mutants & {Mutant.FENCE_OFF, Mutant.RETRY_ACROSS_SESSIONS})

    @property
    def office(self) -> Office:
        """Where this candidate stands."""
        return self._office

    @property
    def epoch(self) -> int:
        """The epoch in office; 0 on standby."""
        return self._fence.epoch if self._fence else 0

    @property
    def api_ranges(self) -> ApiRanges:
        """What brokers may ask in Envelopes: lowest and highest version by API key."""
        specs = [DRAFTED_SPECS[key] for key in self._services.apis]
        return {spec.key: (spec.min_version, spec.max_version) for spec in specs}

    @property
    def queue_length(self) -> int:
        """Requests that wait for a decision; 0 on standby."""
        return self._loop.queue_length if self._loop else 0

    @property
    def image(self) -> MetadataImage | None:
        """The image of the controller in office, else None."""
        return self._loop.image if self._loop else None

    def _enter(self, office: Office) -> None:
        self._office = office
        if office in (Office.CLAIMING, Office.LOADING):
            self._desk.close()
        else:
            self._desk.reopen()
        self._services.office_changed(office)

    async def prepare(self, cluster_id: str) -> str:
        """Open the controller session and create the start-up paths; return the cluster id."""
        store = await self._open_store()
        return await store.ensure_start_up_paths(cluster_id, self._settings.start_up_paths)

    async def _open_store(self) -> ZooKeeperStore:
        if self._store is None:
            store = ZooKeeperStore(
                self._settings.zookeeper_connect,
                session_timeout_ms=self._settings.session_timeout_ms,
                on_state=self._session_changed,
                log=self._services.log,
                now_s=self._services.now_s,
                mutants=self._services.mutants,
                access=self._settings.zookeeper_access,
                on_answer=self._services.zookeeper_answered,
            )
            await store.open(self._settings.connection_timeout_ms / 1000)
            self._store = store
        return self._store

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.LOST and self._term and not self._is_zombie:
            self._term.cancel("the ZooKeeper session is lost")
        elif state is SessionState.CONNECTED:
            self._brokers_changed()  # Watches do not survive a reconnect, and something may have.

    async def stand(self) -> bool:
        """Stand for controller. True: elected, and at work in a task of its own.

        Raises:
            ConnectionLostError: ZooKeeper went away before it was decided.
        """
        if self._term is not None:
            return True
        self._enter(Office.CLAIMING)
        began_s = self._services.now_s()
        try:
            store = await self._open_store()
            fence = await store.elect(self._settings.broker_id, self._services.now_ms())
        except BaseException:
            await self._stand_down()
            raise
        if fence is None:
            await self._stand_down()
            return False
        self._fence = fence
        self._elected_ms = (self._services.now_s() - began_s) * 1000
        self._enter(Office.LOADING)
        self._term = asyncio.create_task(self._serve(store, fence), name="controller")
        return True

    async def _stand_down(self) -> None:
        store, self._store = self._store, None
        self._fence = None
        self._enter(Office.STANDBY)
        if store is not None:
            await store.close()

    async def resign(self, reason: str) -> None:
        """Give up office, if in office: everybody who waits hears NOT_CONTROLLER."""
        term = self._term
        if term is not None:
            term.cancel(reason)
            await asyncio.gather(term, return_exceptions=True)
        elif self._store is not None:
            await self._stand_down()

    async def expire(self) -> None:
        """Have ZooKeeper expire the controller session (chaos)."""
        if self._store is not None:
            await self._store.expire()

    async def _serve(self, store: ZooKeeperStore, fence: Fence) -> None:
        reason = ""
        services = self._services
        try:
            await self._load(store, fence)
            assert self._loop is not None
            await self._loop.run()
        except asyncio.CancelledError as cancelled:
            reason = str(cancelled) or "the node stops"
        except Exception as exception:
            ruling = rule_on(exception)
            reason = f"{type(exception).__name__}: {exception}"
            if ruling.is_fault:
                _log.exception("a fault ends the controller's term of epoch %d", fence.epoch)
        finally:
            loop, self._loop, self._term = self._loop, None, None
            self._publisher.silence()
            if loop is not None:
                loop.end(_NOT_CONTROLLER)
                self.foreign.office_is_over()
            services.log.append(Resigned(epoch=fence.epoch, reason=reason))
            await asyncio.shield(self._stand_down())

    async def _load(self, store: ZooKeeperStore, fence: Fence) -> None:
        services = self._services
        began_s = services.now_s()
        loaded = await load(store.read, fence.epoch)
        for text in loaded.refused:
            _log.error("a znode was not understood and is left out: %s", text)
        loop = ControllerLoop(
            store=store,
            fence=fence,
            image=replace(loaded.image, zxid=fence.zxid),
            outcomes=loaded.outcomes,
            shell=Shell(
                publish=self._publisher.publish,
                reload=self._reload,
                encode_answer=self._desk.encode_answer,
                encode_refusal=self._desk.encode_refusal,
                bind_authorize=services.bind_authorize,
                now_s=services.now_s,
                now_ms=services.now_ms,
            ),
            log=services.log,
            quotas=MutationQuotas(
                self._settings.mutation_quota_samples, self._settings.mutation_quota_window_s
            ),
            policies=services.policies,
            everywhere=self._settings.answers_everywhere
            and Mutant.ANSWER_BEFORE_APPLIED not in services.mutants,
            skips_policy_on_retry=Mutant.SKIP_POLICY_ON_RETRY in services.mutants,
        )
        self._loop = loop
        if not loaded.has_feature_znode:
            await loop.commit_operations([Create(FeatureZnode.path, FeatureZnode.content)])
        loop.start_job(
            tidy_up(
                lambda: loop.image, loaded.orphan_markers, loaded.without_id, services.new_topic_id
            )
        )
        self._start_sweep()
        self._publisher.take_office(loop)
        # Brokers come and go while the state is loaded: now they are read again, and watched.
        self._brokers_changed()
        services.log.append(
            BecameActive(
                epoch=fence.epoch,
                epoch_zk_version=fence.zk_version,
                zxid=fence.zxid,
                elected_ms=self._elected_ms,
                loaded_ms=(services.now_s() - began_s) * 1000,
            )
        )
        self._enter(Office.ACTIVE)
        asyncio.get_running_loop().call_later(_PRUNE_EVERY_S, self._prune, loop)
        asyncio.get_running_loop().call_later(_PURGE_EVERY_S, self._purge, loop)
        self._expire_tokens(loop)

    def _start_sweep(self) -> None:
        """Look over all topics: leaders and ISRs for the brokers of now, deletions that may go."""
        loop = self._loop
        if loop is None:
            return
        if self._sweep is not None:
            loop.stop_job(self._sweep)
        names = sorted(loop.image.topics)
        # A reassignment goes on when its partition has a leader again, so after the sweep.
        self._sweep = chain(
            sweep(lambda: loop.image, names, self._services.unclean_election),
            complete_reassignments(lambda: loop.image, names),
        )
        loop.start_job(self._sweep)
        loop.start_job(delete_topics(lambda: loop.image, sorted(loop.image.deletions)))

    def _brokers_changed(self) -> None:
        if self._loop is not None:
            self._loop.start_chore(self._refresh_brokers)

    async def _refresh_brokers(self) -> None:
        store, loop = self._store, self._loop
        if store is None or loop is None:
            return
        try:
            await store.children("/brokers/ids", self._brokers_changed)
            refused: list[str] = []
            brokers = await load_brokers(store.read, refused)
        except ConnectionLostError:
            # Reconnected or lost, either way somebody looks again.
            asyncio.get_running_loop().call_later(0.1, self._brokers_changed)
            return
        if brokers != loop.image.brokers:
            loop.replace_brokers(replace(loop.image, brokers=brokers))
            self._start_sweep()

    def _reload(self) -> None:
        """ZooKeeper holds what the image does not know: read everything again, in office."""
        if self._loop is not None:
            self._loop.start_chore(self._load_again)

    async def _load_again(self) -> None:
        store, loop, fence = self._store, self._loop, self._fence
        if store is None or loop is None or fence is None:
            return
        try:
            loaded = await load(store.read, fence.epoch)
        except ConnectionLostError:
            asyncio.get_running_loop().call_later(0.1, self._reload)
            return
        before, loop.image = loop.image, replace(loaded.image, zxid=loop.image.zxid)
        changed = frozenset(before.topics) | frozenset(loop.image.topics)
        self._publisher.publish(before, loop.image, changed)
        self._start_sweep()

    def _purge(self, loop: ControllerLoop) -> None:
        if loop is self._loop:
            loop.start_chore(lambda: self._purge_notifications(loop))
            asyncio.get_running_loop().call_later(_PURGE_EVERY_S, self._purge, loop)

    async def _purge_notifications(self, loop: ControllerLoop) -> None:
        if self._store is not None:
            with contextlib.suppress(ConnectionLostError):  # The next round tries again.
                await purge_notifications(self._store.read, loop, self._services.now_ms())

    def _expire_tokens(self, loop: ControllerLoop) -> None:
        if loop is self._loop:
            now_ms = self._services.now_ms()
            loop.start_job(remove_expired_tokens(lambda: loop.image, now_ms))
            interval_s = self._settings.token_check_interval_ms / 1000
            asyncio.get_running_loop().call_later(interval_s, self._expire_tokens, loop)

    def _prune(self, loop: ControllerLoop) -> None:
        if loop is self._loop:
            loop.start_chore(lambda: self._pruning.run(loop, self._services.now_s()))
            asyncio.get_running_loop().call_later(_PRUNE_EVERY_S, self._prune, loop)

    async def handle(self, envelope: Envelope, sender: Sender) -> EnvelopeAnswer:
        """Answer one Envelope; see EnvelopeDesk."""
        return await self._desk.handle(envelope, sender)

    # --- Channels ------------------------------------------------------------------------

    def connected(self, peer: Peer) -> None:
        """A broker opened a channel: it gets the full image, now or when office is taken."""
        self._publisher.connected(peer)

    def disconnected(self, peer: Peer) -> None:
        """A channel closed."""
        self._publisher.disconnected(peer)

    def refused(self, hello: Hello, principal: KafkaPrincipal | None, reason: str) -> None:
        """Somebody opened a channel whose certificate does not fit: see EnvelopeHandler."""
        who = None if principal is None else str(principal)
        _log.warning("a channel was refused: %s (%s)", reason, who or "no principal")
        self._services.channel_refused()
        self._services.log.append(
            ChannelRefused(broker_id=hello.broker_id, principal=who, reason=reason)
        )

    def batch_received(self, peer: Sender, lowest_unfinished: int, applied_zxid: int) -> None:
        """A broker says below which sequence it has finished, and how new its image is."""
        loop = self._loop
        if loop is not None:
            hello = peer.hello
            loop.outcomes.raise_floor((hello.broker_id, hello.incarnation), lowest_unfinished)
            loop.applied(hello.broker_id, hello.incarnation, applied_zxid)

    def own_broker_applied(self, incarnation: str, zxid: int) -> None:
        """The broker in this process has applied everything up to `zxid`."""
        if self._loop is not None:
            self._loop.applied(self._settings.broker_id, incarnation, zxid)
