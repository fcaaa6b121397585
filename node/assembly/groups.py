"""The group coordinator of a node with `bridgehead.data.plane=true`."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

from broker_proxy.apis.groups.coordinators import partition_of
from broker_proxy.metadata.cache import MetadataCache
from cluster_model.topic_names import GROUP_METADATA_TOPIC
from data_plane.groups.coordinator import GroupCoordinator
from data_plane.groups.evidence import GroupEvidence
from data_plane.groups.group import State
from data_plane.groups.service import GroupService, ServiceSettings
from data_plane.groups.table import ALL_IN_SYNC, GroupSettings, Moment
from data_plane.partitions import Limit, Partitions
from metrics import names
from metrics.node_metrics import NodeMetrics
from node.assembly.instruments import Instruments
from node.config import NodeConfig

_MS_PER_MINUTE: Final = 60_000
_NS_PER_MS: Final = 1_000_000


class OffsetsTopic:
    """The log of `__consumer_offsets`. Implements OffsetsLog of data_plane.groups.service."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    async def append(self, partition: int, records: bytes, *, acks: int, timeout_s: float) -> int:
        appended = await self._partitions.append(
            GROUP_METADATA_TOPIC, partition, records, acks=acks, timeout_s=timeout_s, internal=True
        )
        return appended.base_offset

    def bytes_max(self) -> int:
        return self._partitions.settings.of(GROUP_METADATA_TOPIC).number("max.message.bytes")

    def start_offset(self, partition: int) -> int:
        return self._partitions.get(GROUP_METADATA_TOPIC, partition).log.start_offset

    def read(self, partition: int, offset: int, max_bytes: int) -> bytes:
        """See OffsetsLog. Reads to the end of the log, beyond the high watermark."""
        return self._partitions.read(
            GROUP_METADATA_TOPIC, partition, offset, max_bytes, up_to=Limit.LOG_END
        )


def build_groups(
    config: NodeConfig,
    partitions: Partitions,
    cache: MetadataCache,
    instruments: Instruments,
    new_service: Callable[..., GroupService] = GroupService,
) -> GroupService:
    """Return the coordinator. It does nothing until `start` is called."""
    broker, clock = config.broker, instruments.clock

    def partition_of_group(group_id: str) -> int:
        topic = cache.topics.get(GROUP_METADATA_TOPIC)
        configured = broker.int("offsets.topic.num.partitions")
        return partition_of(group_id, max(topic.partitions) + 1 if topic else configured)

    def now() -> Moment:
        return Moment(clock.wall_ms(), clock.mono_ns() // _NS_PER_MS)

    core = GroupCoordinator(
        GroupSettings(
            min_session_timeout_ms=broker.int("group.min.session.timeout.ms"),
            max_session_timeout_ms=broker.int("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=broker.int("group.initial.rebalance.delay.ms"),
            max_size=broker.int("group.max.size"),
            offset_metadata_max_bytes=broker.int("offset.metadata.max.bytes"),
            offsets_retention_ms=broker.int("offsets.retention.minutes") * _MS_PER_MINUTE,
            commit_acks=broker.int("offsets.commit.required.acks"),
        ),
        partition_of=partition_of_group,
        new_uuid=lambda: str(uuid.uuid4()),
        now=now(),
    )
    settings = ServiceSettings(
        commit_timeout_s=broker.int("offsets.commit.timeout.ms") / 1000,
        load_bytes=broker.int("offsets.load.buffer.size"),
        expiry_interval_s=broker.long("offsets.retention.check.interval.ms") / 1000,
    )
    _register_gauges(core, instruments.metrics)
    evidence = GroupEvidence(
        instruments.log, partitions, is_kept=core.table.settings.commit_acks == ALL_IN_SYNC
    )
    return new_service(core, OffsetsTopic(partitions), settings, now, evidence)


def _register_gauges(core: GroupCoordinator, metrics: NodeMetrics) -> None:
    table = core.table
    metrics.gauge(names.NUM_GROUPS, lambda: len(table.groups))
    metrics.gauge(
        names.NUM_OFFSETS, lambda: sum(len(group.offsets) for group in table.groups.values())
    )
    metrics.gauge(names.NUM_GROUPS_PREPARING, lambda: table.count(State.PREPARING_REBALANCE))
    metrics.gauge(names.NUM_GROUPS_COMPLETING, lambda: table.count(State.COMPLETING_REBALANCE))
    metrics.gauge(names.NUM_GROUPS_STABLE, lambda: table.count(State.STABLE))
    metrics.gauge(names.NUM_GROUPS_EMPTY, lambda: table.count(State.EMPTY))
    metrics.gauge(names.OFFSET_COMMITS, lambda: core.offsets.commits)
    metrics.gauge(names.OFFSET_EXPIRATIONS, lambda: core.offsets.expired)
    metrics.gauge(names.OFFSET_DELETIONS, lambda: core.offsets.deleted)
    metrics.gauge(names.COMPLETED_REBALANCES, lambda: core.membership.completed_rebalances)
