"""One term of the active controller: its loop and its background work."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from cluster_model.image import BrokerRegistration, Topic
from cluster_model.session_state import ConnectionLostError
from cluster_model.znodes.layout import FeatureZnode
from cluster_model.znodes.operations import Create
from controller.loop.background_jobs import (
    Elections,
    Job,
    complete_reassignments,
    delete_topics,
    elect_leaders,
    remove_expired_tokens,
    repair_topics,
)
from controller.loop.loop import ControllerLoop
from controller.loop.mutation_quotas import MutationQuotas
from controller.loop.ports import LoopCallbacks
from controller.requests.responses import ResponseEncoder
from controller.services import Services, Settings
from controller.store.load import Loaded, first_difference, load, load_brokers
from controller.store.port import ContentConflictError, Fence
from controller.store.zookeeper import ZooKeeperStore
from controller.term.deletions import Deletions
from controller.term.notifications import purge_notifications
from controller.term.outcome_pruning import OutcomePruner
from controller.term.publish import Publisher
from controller.term.skipped_znodes import SkippedZnodes
from controller.term.topic_follower import TopicFollower

_log = logging.getLogger(__name__)
_PRUNE_EVERY_S: Final = 1.0
_PURGE_EVERY_S: Final = 60.0
_RETRY_S: Final = 0.1
# If each start of the topic jobs ends with a conflict, the next one waits for up to this long.
_JOB_REST_MAX_S: Final = 16.0
_LASTING_S: Final = 60.0
# Reading and comparing the states of this many partitions takes some 10 ms.
_COMPARED_PER_STEP: Final = 2_000


class Term:
    """Runs the loop, the background jobs and the periodic work of one controller epoch."""

    def __init__(
        self,
        settings: Settings,
        services: Services,
        store: ZooKeeperStore,
        fence: Fence,
        loaded: Loaded,
        publisher: Publisher,
    ) -> None:
        self.fence = fence
        self._services = services
        self._store = store
        self._loaded = loaded
        self._publisher = publisher
        self._token_check_interval_s = settings.token_check_interval_ms / 1000
        self.skipped = SkippedZnodes(loaded.invalid)
        self._purged = Deletions()
        self._pruner = OutcomePruner(settings.request_timeout_ms + settings.session_timeout_ms)
        self._leader_job: Job | None = None
        self._stores_records = settings.stores_records
        self._restarted: set[int] = set()  # restarted brokers, not yet treated as stopped
        self._refresh_is_queued = False
        self._reloaded_s = -math.inf
        self._job_rest_s = 0.0
        self._has_ended = False
        self._not_compared = [] if loaded.states_are_read else sorted(loaded.image.topics)
        self.loop = ControllerLoop(
            store=store,
            fence=fence,
            image=replace(loaded.image, zxid=fence.zxid),
            outcomes=loaded.outcomes,
            callbacks=LoopCallbacks(
                publish=publisher.publish,
                reload=self._reload,
                bind_authorize=services.bind_authorize,
                now_s=services.now_s,
                now_ms=services.now_ms,
            ),
            responses=ResponseEncoder(services.log, services.now_ms),
            log=services.log,
            quotas=MutationQuotas(
                settings.mutation_quota_samples, settings.mutation_quota_window_s
            ),
            policies=services.policies,
            waits_for_brokers=settings.waits_for_brokers,
            stores_records=settings.stores_records,
        )
        self._topics = TopicFollower(self.loop, store, self.skipped, self._start_jobs_of)

    async def start(self) -> None:
        """Queue the background jobs, and begin to publish the full image to every broker."""
        loop, loaded = self.loop, self._loaded
        if not loaded.has_feature_znode:
            # A broker of Kafka may have created it since this controller loaded the state.
            with contextlib.suppress(ContentConflictError):
                await loop.commit_operations([Create(FeatureZnode.path, FeatureZnode.content)])
        new_id = self._services.new_topic_id
        loop.start_job(
            repair_topics(lambda: loop.image, loaded.orphan_markers, loaded.without_id, new_id)
        )
        self._start_topic_jobs()
        self._publisher.activate(loop.image)
        self.push_parts()
        self.loop.schedule(self._compare_states)
        # Brokers and topics may have changed after they were loaded.
        self.set_watches()
        self._remove_expired_tokens()
        self._repeat(self._token_check_interval_s, self._remove_expired_tokens)
        self._repeat(_PRUNE_EVERY_S, lambda: loop.schedule(self._prune_outcomes))
        self._repeat(_PURGE_EVERY_S, lambda: loop.schedule(self._purge_notifications))

    def end(self) -> None:
        """Complete every pending request with NOT_CONTROLLER; stop publishing."""
        self._has_ended = True
        self._publisher.deactivate()
        self.loop.end()

    def push_parts(self) -> None:
        """Push the remaining parts of full images, one part between two rounds of requests.

        Changes of earlier jobs are committed and published first. Their topics need not be pushed
        again.
        """
        self.loop.start_job(self._parts())

    def _parts(self) -> Job:
        while self._publisher.push_part():
            yield []

    async def _compare_states(self) -> None:
        """Compare the states taken from this node's broker with those in ZooKeeper, some at a time.

        They differ only if another program has written a state.
        """
        topics: list[Topic] = []
        size = 0
        while self._not_compared and size < _COMPARED_PER_STEP:
            if topic := self.loop.image.topics.get(self._not_compared.pop()):
                topics.append(topic)
                size += len(topic.states)
        if not topics:
            return
        try:
            path = await first_difference(self._store.read, topics)
        except ConnectionLostError:
            self._not_compared += [topic.name for topic in topics]
            self._retry(lambda: self.loop.schedule(self._compare_states))
            return
        if path is not None:
            _log.warning("%s was written by another program; loading everything again", path)
            self._not_compared.clear()
            self._reload()
            return
        self.loop.schedule(self._compare_states)

    def set_watches(self) -> None:
        """Read brokers and topics again and watch them: a new connection has no watches."""
        self.brokers_changed()
        self._topics.changed()

    def brokers_changed(self) -> None:
        """/brokers/ids may have changed, or its watch is gone."""
        # Every Envelope of an unregistered broker calls this. One refresh suffices for all of them.
        if not self._refresh_is_queued:
            self._refresh_is_queued = True
            self.loop.schedule(self._refresh_brokers)

    async def _refresh_brokers(self) -> None:
        self._refresh_is_queued = False  # A change during the reads needs another refresh.
        loop = self.loop
        try:
            await self._store.children("/brokers/ids", self.brokers_changed)
            invalid: list[str] = []
            brokers = await load_brokers(self._store.read, invalid)
        except ConnectionLostError:
            self._retry(self.brokers_changed)
            return
        self.skipped.replace(("/brokers/ids/", "/bridgehead/nodes/"), invalid)
        if brokers != loop.image.brokers:
            if self._stores_records:
                self._restarted |= _restarted(loop.image.brokers, brokers)
            await loop.replace_brokers(replace(loop.image, brokers=brokers))
            self._start_topic_jobs()

    def _reload(self) -> None:
        """ZooKeeper differs from the image: replace the image before the next round."""
        self.loop.schedule(self._load_again, first=True)

    async def _load_again(self) -> None:
        loop = self.loop
        try:
            loaded = await load(self._store.read, self.fence.epoch)
        except ConnectionLostError:
            self._retry(self._reload)
            return
        self.skipped.replace(("/",), loaded.invalid)
        image = replace(loaded.image, zxid=loop.image.zxid)
        if self._stores_records:
            self._restarted |= _restarted(loop.image.brokers, image.brokers)
        await loop.replace_image(image)
        # The job that adds the ids of topics without one may have ended with the conflict.
        self._add_topic_ids(loaded.without_id)
        self._restart_topic_jobs()

    def _restart_topic_jobs(self) -> None:
        """Start the topic jobs after a reload: at once, or after a rest that doubles each time.

        A job may conflict with the same znode for ever. For example, a topic cannot be deleted
        while another program's znode is below its own.
        """
        now_s = asyncio.get_running_loop().time()
        if now_s - self._reloaded_s > _LASTING_S:
            self._job_rest_s = 0.0
        self._reloaded_s, rest_s = now_s, self._job_rest_s
        self._job_rest_s = min(max(2 * rest_s, _RETRY_S), _JOB_REST_MAX_S)
        if rest_s == 0.0:
            self._start_topic_jobs()
            return

        def start() -> None:
            if not self._has_ended:
                self._start_topic_jobs()

        asyncio.get_running_loop().call_later(rest_s, start)

    def _start_topic_jobs(self) -> None:
        """Restart, for all topics, the jobs that depend on the live brokers."""
        loop = self.loop
        if self._leader_job is not None:
            loop.stop_job(self._leader_job)
        names = sorted(loop.image.topics)
        elections = Elections(self._services.unclean_election, self._stores_records)
        self._leader_job = chain(
            self._stop_restarted(names, elections),
            self._lead_and_reassign(names, elections),
        )
        loop.start_job(self._leader_job)
        loop.start_job(delete_topics(lambda: loop.image, sorted(loop.image.deletions)))

    def _start_jobs_of(self, names: Sequence[str], without_id: Sequence[str]) -> None:
        """Start, for topics that others created, the jobs that a new controller starts for all."""
        elections = Elections(self._services.unclean_election, self._stores_records)
        self._add_topic_ids(without_id)
        self.loop.start_job(self._lead_and_reassign(names, elections))

    def _lead_and_reassign(self, names: Sequence[str], elections: Elections) -> Job:
        """A reassignment can only proceed after its partition has a leader."""
        loop, stores_records = self.loop, self._stores_records
        yield from elect_leaders(lambda: loop.image, names, elections)
        yield from complete_reassignments(lambda: loop.image, names, stores_records=stores_records)

    def _add_topic_ids(self, without_id: Sequence[str]) -> None:
        loop, new_id = self.loop, self._services.new_topic_id
        if without_id:
            loop.start_job(repair_topics(lambda: loop.image, (), without_id, new_id))

    def _stop_restarted(self, names: Sequence[str], elections: Elections) -> Job:
        """Treat restarted brokers as stopped, so that their partitions get other leaders."""
        if restarted := frozenset(self._restarted):
            stopped = replace(elections, restarted=restarted)
            yield from elect_leaders(lambda: self.loop.image, names, stopped)
            self._restarted -= restarted

    def _remove_expired_tokens(self) -> None:
        now_ms = self._services.now_ms()
        self.loop.start_job(remove_expired_tokens(lambda: self.loop.image, now_ms))

    async def _prune_outcomes(self) -> None:
        # The other brokers report their floors on their streams.
        self.loop.outcomes.raise_floor(*self._services.own_floor())
        await self._pruner.run(self.loop, self._services.now_s())

    async def _purge_notifications(self) -> None:
        with contextlib.suppress(ConnectionLostError):  # The next run tries again.
            now_ms = self._services.now_ms()
            await purge_notifications(self._store.read, self.loop, now_ms, self._purged)

    def _retry(self, action: Callable[[], None]) -> None:
        """Run the action later. It succeeds after a reconnect; a lost session ends the term."""
        asyncio.get_running_loop().call_later(_RETRY_S, action)

    def _repeat(self, interval_s: float, action: Callable[[], None]) -> None:
        def run() -> None:
            if not self._has_ended:
                action()
                self._repeat(interval_s, action)

        asyncio.get_running_loop().call_later(interval_s, run)


def _restarted(
    before: Mapping[int, BrokerRegistration], after: Mapping[int, BrokerRegistration]
) -> set[int]:
    """Return the brokers that have registered again."""
    return {
        broker_id
        for broker_id, broker in after.items()
        if broker_id in before and before[broker_id].epoch != broker.epoch
    }
