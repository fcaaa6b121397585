"""The data plane of a node with `bridgehead.data.plane=true`: its logs, partitions and APIs."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from bridgehead.slices import sliced
from broker_proxy.apis.admin.log_dirs import log_dirs_of
from broker_proxy.apis.base import LocalApi
from broker_proxy.apis.groups.coordinators import Coordinators
from broker_proxy.apis.groups.heartbeat import Heartbeat
from broker_proxy.apis.groups.join_group import JoinGroup
from broker_proxy.apis.groups.leave_group import LeaveGroup
from broker_proxy.apis.groups.offset_commit import OffsetCommit
from broker_proxy.apis.groups.sync_group import SyncGroup
from broker_proxy.apis.records.fetch import Fetch
from broker_proxy.apis.records.fetch_sessions import FetchSessions
from broker_proxy.apis.records.produce import Produce
from broker_proxy.client_quotas import ClientQuotas
from broker_proxy.client_request import AuthorizeFor
from broker_proxy.forwarding.controller_requests import ControllerRequests
from broker_proxy.forwarding.manager import ForwardingManager
from broker_proxy.metadata.cache import KnownTopicIds, MetadataCache
from broker_proxy.metadata.session import ZooKeeperWatcher
from cluster_model.configs.broker_configs import EffectiveBrokerConfig
from cluster_model.configs.topic_configs import TopicDefaults
from cluster_model.records import ConfigResource
from cluster_model.session_state import ConnectionLostError
from cluster_model.topic_names import INTERNAL_TOPICS
from data_plane.compaction import Compaction
from data_plane.groups.service import GroupService
from data_plane.log.log_directories import LogDirectories
from data_plane.log.open_files import remove_all
from data_plane.log.partition_log import PartitionLog
from data_plane.partitions import Partitions
from data_plane.record_deletion import RecordDeletion
from data_plane.record_evidence import RecordEvidence
from data_plane.records.compaction import KEY_BYTES
from data_plane.settings import SettingsCache
from metrics import names
from metrics.node_metrics import NodeMetrics
from node.assembly.current_state import BrokerConfigs, BrokerState
from node.assembly.groups import build_groups
from node.assembly.instruments import Instruments
from node.assembly.replication import (
    Replication,
    build_isr_changes,
    build_replication,
    epoch_for_leaders,
)
from node.config import NodeConfig
from node.descriptors import current_shares

_log = logging.getLogger(__name__)
_DISK_SHARE_MAX: Final = 0.9
_RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class DataPlane:
    """The replicas of one broker and their maintenance."""

    def __init__(
        self,
        config: NodeConfig,
        configs: BrokerConfigs,
        cache: MetadataCache,
        settings: SettingsCache,
        directories: LogDirectories,
        partitions: Partitions,
        replication: Replication,
        groups: GroupService,
        evidence: RecordEvidence,
        quotas: ClientQuotas,
    ) -> None:
        self.settings = settings
        self.directories = directories
        self.partitions = partitions
        self._replication = replication
        self.groups = groups
        self.quotas = quotas
        self.deletion = RecordDeletion(partitions, lambda broker_id: broker_id in cache.brokers)
        self._compaction = Compaction(partitions)
        self._evidence = evidence
        self._cache = cache
        self._configs = configs
        self._broker_id = config.broker_id
        self._checkpoint_s = (
            config.broker.long("replica.high.watermark.checkpoint.interval.ms") / 1000
        )
        self._retention_s = config.broker.long("log.retention.check.interval.ms") / 1000
        self._tasks: list[asyncio.Task[None]] = []
        self._noted = asyncio.Event()  # There are roles to apply.
        self._is_loaded = False
        self._topic_ids = KnownTopicIds()

    def check_owner(self, cluster_id: str | None) -> None:
        """Check that the logs belong to this broker; `cluster_id`: None if ZooKeeper names none.

        Raises:
            OSError: a log directory belongs to another cluster or broker.
        """
        self.directories.check_owner(self._broker_id, cluster_id)

    async def open(self, cluster_id: str) -> None:
        """Load all logs; after an unclean shutdown, recover them.

        Raises:
            OSError: a log directory cannot be used.
        """
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self.directories.load)
        self.directories.set_owner(self._broker_id, cluster_id)
        self.directories.files.remove = lambda paths: loop.run_in_executor(None, remove_all, paths)
        self._is_loaded = True
        self.partitions.add_listener(self.groups)
        self.groups.start()
        if self._cache.zxid:
            self.partitions.apply(self._cache.topics, None, self._cache.unreadable)
            self._topic_ids.deleted(self._cache.topics, None)
        self._replication.start()
        self._tasks = [
            asyncio.create_task(self._apply_roles()),
            asyncio.create_task(self._checkpoint()),
            asyncio.create_task(self._apply_retention()),
        ]
        if self._configs.current().static.boolean("log.cleaner.enable"):
            self._tasks.append(asyncio.create_task(self._compact()))

    def metadata_changed(self) -> None:
        """Make replicas leaders or followers, soon after an update of the metadata cache.

        The responses to a KRaft controller's requests, and group coordinators, need the roles at
        once.
        """
        if self._is_loaded:
            cache = self._cache
            self.partitions.note(cache.topics, cache.changed, cache.unreadable)
            if cache.controller_is_kraft:
                self.partitions.apply_all_waiting()
            for name in INTERNAL_TOPICS:
                self.partitions.apply_waiting(name)
            self._noted.set()
            self.deletion.brokers_changed()
            if deleted := self._topic_ids.deleted(cache.topics, cache.changed, cache.unreadable):
                self.groups.topics_deleted(deleted)

    def config_changed(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Apply a change of the configs of a topic, a user or a client id."""
        if resource.entity_type == "topics":
            self.settings.changed(resource.entity_name, configs)
        self.quotas.update(resource, configs)

    async def stop_following(self) -> None:
        """Fetch nothing more from the leaders, before this broker leaves."""
        await self._replication.stop_following()

    async def close(self) -> None:
        """Stop, and close the logs so that the next start needs no recovery."""
        await self.groups.close()
        self._compaction.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._replication.stop()
        if self._is_loaded:
            self.partitions.apply_all_waiting()
            self._evidence.held(self.partitions)
            self.partitions.close()
            self._is_loaded = False

    async def _apply_roles(self) -> None:
        """Give replicas their roles, in slices; then adapt the fetchers, once for all of them."""
        while True:
            await self._noted.wait()
            self._noted.clear()
            try:
                async for name in sliced(self.partitions.waiting()):
                    self.partitions.apply_waiting(name)
                self._replication.metadata_changed(self._cache.brokers)
            except Exception:
                _log.exception(
                    "an update of the metadata was not applied; the next one tries again"
                )

    async def _checkpoint(self) -> None:
        while True:
            await asyncio.sleep(self._checkpoint_s)
            try:
                await self.partitions.flush()
                self.partitions.write_checkpoints()
            except Exception:
                _log.exception("the checkpoints cannot be written")

    async def _apply_retention(self) -> None:
        while True:
            await asyncio.sleep(self._retention_s)
            try:
                await self.partitions.apply_retention()
                self.partitions.expire_producers(self._number("producer.id.expiration.ms"))
                self._warn_of_full_disks()
            except ConnectionLostError as lost:
                _log.warning("retention waits for ZooKeeper: %s", lost)
            except Exception:
                _log.exception("retention failed; it is tried again at the next interval")

    async def _compact(self) -> None:
        while True:
            await asyncio.sleep(self._number("log.cleaner.backoff.ms") / 1000)
            try:
                keys_max = self._number("log.cleaner.dedupe.buffer.size") // KEY_BYTES
                await self._compaction.compact(max(keys_max, 1))
            except ConnectionLostError as lost:
                _log.warning("compaction waits for ZooKeeper: %s", lost)
            except Exception:
                _log.exception("compaction failed; it is tried again at the next interval")

    def _number(self, name: str) -> int:
        """Return a broker config, which may change at run time."""
        value = self._configs.current().value(name)
        assert isinstance(value, int), name
        return value

    def _warn_of_full_disks(self) -> None:
        for path, share in self.directories.used_share().items():
            if share >= _DISK_SHARE_MAX:
                _log.warning(
                    "the disk of %s is %d %% full: delete topics, or lower retention.bytes or "
                    "retention.ms",
                    path,
                    share * 100,
                )


class _Defaults:
    """The topic defaults of the current broker configs, computed once per change."""

    def __init__(self, configs: BrokerConfigs) -> None:
        self._configs = configs
        self._of: EffectiveBrokerConfig | None = None
        self._defaults: TopicDefaults | None = None

    def __call__(self) -> TopicDefaults:
        current = self._configs.current()
        if self._defaults is None or self._of is not current:
            self._of, self._defaults = current, TopicDefaults.of(current)
        return self._defaults


def build_data_plane(
    config: NodeConfig,
    data_dir: Path,
    state: BrokerState,
    configs: BrokerConfigs,
    cache: MetadataCache,
    watcher: ZooKeeperWatcher,
    forwarding: ForwardingManager,
    instruments: Instruments,
    kraft_epoch: Callable[[], int],
    new_partitions: Callable[..., Partitions] = Partitions,
    new_groups: Callable[..., GroupService] = GroupService,
) -> DataPlane | None:
    """Return the data plane; None if this broker has none.

    Without `log.dirs` and `log.dir` the logs are in `data_dir`/logs. `kraft_epoch` tells the epoch
    of this broker's registration with the KRaft controller.
    """
    if not config.bridgehead.data_plane_enabled:
        return None
    settings = SettingsCache(watcher, _Defaults(configs))
    paths: tuple[str, ...] = (str(data_dir / "logs"),)
    if config.broker.originals.keys() & {"log.dirs", "log.dir"}:
        paths = log_dirs_of(config.broker.string("log.dirs"), config.broker.string("log.dir"))
    directories = LogDirectories(paths, settings.of, current_shares(1).files)
    metrics = instruments.metrics
    requests = ControllerRequests(forwarding.forward, config.own_client, state.request_prefix)
    isrs = build_isr_changes(config, cache, lambda: state.epoch, requests, metrics)
    evidence = RecordEvidence(instruments.log)
    partitions = new_partitions(
        config.broker_id,
        directories,
        settings,
        instruments.clock.wall_ms,
        isrs,
        evidence.acknowledged,
    )
    _register_log_gauges(directories, metrics)
    epoch = epoch_for_leaders(cache, lambda: state.epoch, kraft_epoch)
    replication = build_replication(config, cache, partitions, isrs, epoch, metrics)
    groups = build_groups(config, partitions, cache, instruments, new_groups)
    return DataPlane(
        config,
        configs,
        cache,
        settings,
        directories,
        partitions,
        replication,
        groups,
        evidence,
        _build_quotas(config),
    )


def _register_log_gauges(directories: LogDirectories, metrics: NodeMetrics) -> None:
    def of_logs(read: Callable[[PartitionLog], int]) -> dict[tuple[str, ...], float]:
        logs = directories.stored.values()
        return {(log.name[0], str(log.name[1])): read(log) for log in logs}

    metrics.labelled(names.LOG_SIZE, lambda: of_logs(lambda log: log.size))
    metrics.labelled(names.LOG_START, lambda: of_logs(lambda log: log.start_offset))
    metrics.labelled(names.LOG_END, lambda: of_logs(lambda log: log.end_offset))
    metrics.labelled(names.LOG_SEGMENTS, lambda: of_logs(lambda log: len(log.segments)))


def _build_quotas(config: NodeConfig) -> ClientQuotas:
    samples = config.broker.int("quota.window.num")
    return ClientQuotas(samples, config.broker.int("quota.window.size.seconds"), time.monotonic)


def build_data_plane_apis(
    plane: DataPlane | None,
    config: NodeConfig,
    cache: MetadataCache,
    authorize_for: AuthorizeFor,
    metrics: NodeMetrics,
) -> tuple[LocalApi, ...]:
    """Return APIs that need a data plane; () without one. `record_apis` builds the others."""
    if plane is None:
        return ()
    coordinators = Coordinators(cache, config.broker_id)
    return (
        Produce(cache, plane.partitions, authorize_for, plane.quotas.produced, metrics),
        Fetch(
            cache,
            plane.partitions,
            authorize_for,
            config.broker.int("fetch.max.bytes"),
            plane.deletion,
            FetchSessions(
                config.broker.int("max.incremental.fetch.session.cache.slots"),
                lambda: random.randrange(1, 2**31),
            ),
            plane.quotas.fetched,
            metrics,
            is_rack_aware=config.broker.string("replica.selector.class") == _RACK_AWARE,
        ),
        JoinGroup(plane.groups, authorize_for),
        SyncGroup(plane.groups, authorize_for),
        Heartbeat(plane.groups, authorize_for),
        LeaveGroup(plane.groups, authorize_for),
        OffsetCommit(plane.groups, coordinators, authorize_for, plane.partitions.now_ms),
    )
