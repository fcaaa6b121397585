"""The coordinator of a group or transactional id. It leads a partition of an internal topic.

Brokers store no transactions, and without a data plane they store no groups. Coordinators answer
requests about these as if none existed.
"""

from __future__ import annotations

from typing import Final

from bridgehead.kafka_wire.java_order import java_hash
from broker_proxy.metadata.cache import MetadataCache
from cluster_model.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

_SIGN: Final = 1 << 31
NO_LEADER: Final = -1


class Coordinators:
    """Finds coordinators in one broker's metadata cache."""

    def __init__(self, cache: MetadataCache, broker_id: int) -> None:
        self._cache = cache
        self._broker_id = broker_id

    def leader(self, topic_name: str, key: str) -> int:
        """Return the leader of the key's partition; -1 if the topic or the leader is missing."""
        topic = self._cache.topics.get(topic_name)
        if topic is None:
            return NO_LEADER
        partition = topic.partitions.get(partition_of(key, max(topic.partitions) + 1))
        return NO_LEADER if partition is None else partition.leader

    def has_group(self, group_id: str) -> bool:
        """True when this broker coordinates the group."""
        return self.leader(GROUP_METADATA_TOPIC, group_id) == self._broker_id

    def has_transactional_id(self, transactional_id: str) -> bool:
        """True when this broker coordinates the transactional id."""
        return self.leader(TRANSACTION_STATE_TOPIC, transactional_id) == self._broker_id

    def has_partition(self, topic_name: str, partition: int) -> bool:
        """True when the metadata cache has the partition."""
        topic = self._cache.topics.get(topic_name)
        return topic is not None and partition in topic.partitions


def partition_of(key: str, partitions: int) -> int:
    """Return the partition of a key: the absolute value of its Java hash, modulo `partitions`.

    See docs/kafka/records-and-groups.md#findcoordinator. Integer.MIN_VALUE, which has no absolute
    value, counts as 0.
    """
    code = java_hash(key)
    if code > _SIGN:
        code = (1 << 32) - code
    return 0 if code == _SIGN else code % partitions
