"""Checks the partitions in OffsetCommit and OffsetDelete requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.slices import sliced
from broker_proxy.apis.groups.coordinators import Coordinators
from cluster_model.acls.authorization import Authorize
from data_plane.groups.group import TopicPartition


@dataclass(slots=True)
class CheckedTopics:
    """The partitions that exist and that the client may read, and the errors of the others."""

    valid: list[TopicPartition] = field(default_factory=list)
    _rejected: dict[str, list[tuple[int, ErrorCode]]] = field(default_factory=dict)

    def reject(self, topic: str, partitions: Iterable[int], error: ErrorCode) -> None:
        """Store an error for partitions of one topic."""
        self._rejected.setdefault(topic, []).extend((partition, error) for partition in partitions)

    async def merged(
        self, errors: Mapping[TopicPartition, ErrorCode]
    ) -> Sequence[tuple[str, list[tuple[int, ErrorCode]]]]:
        """Return the errors by topic: rejected partitions first, as in Kafka."""
        topics = dict(self._rejected)
        async for (name, partition), error in sliced(errors.items()):
            topics.setdefault(name, []).append((partition, error))
        return list(topics.items())


async def check_topics(
    wanted: Iterable[tuple[str, Sequence[int]]], authorize: Authorize, coordinators: Coordinators
) -> CheckedTopics:
    """Check READ on each topic, then that each partition exists."""
    checked = CheckedTopics()
    async for topic, partitions in sliced(wanted):
        if not authorize("READ", "TOPIC", topic):
            checked.reject(topic, partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            continue
        missing = []
        async for partition in sliced(partitions):
            if coordinators.has_partition(topic, partition):
                checked.valid.append((topic, partition))
            else:
                missing.append(partition)
        if missing:
            checked.reject(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return checked
