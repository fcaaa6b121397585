"""Reads metadata from ZooKeeper for a client's request.

Without a connection to ZooKeeper a request waits until there is one, as in Kafka
(KafkaZkClient.retryRequestsUntilConnected).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from broker_proxy.metadata.session import ZooKeeperWatcher
from cluster_model.image import Topic
from cluster_model.records import ConfigResource


@dataclass(frozen=True, slots=True)
class StoredMetadata:
    """The reads of ZooKeeperWatcher, each repeated until ZooKeeper answers."""

    watcher: ZooKeeperWatcher

    async def read_config(
        self, entity_type: str, entity_name: str, invalid: list[str] | None = None
    ) -> Mapping[str, str]:
        watcher = self.watcher
        read = partial(watcher.read_config, entity_type, entity_name, invalid)
        return await watcher.until_reply(read)

    async def read_topic(self, name: str) -> Topic | None:
        return await self.watcher.until_reply(partial(self.watcher.read_topic, name))

    async def read_topic_names(self) -> frozenset[str]:
        return await self.watcher.until_reply(self.watcher.read_topic_names)

    async def read_deletions(self) -> frozenset[str]:
        return await self.watcher.until_reply(self.watcher.read_deletions)

    async def read_log_times(
        self, logs: Sequence[tuple[str, int]]
    ) -> Mapping[tuple[str, int], int]:
        return await self.watcher.until_reply(partial(self.watcher.read_log_times, logs))

    async def read_entities(self, entity_type: str) -> Mapping[ConfigResource, Mapping[str, str]]:
        return await self.watcher.until_reply(partial(self.watcher.read_entities, entity_type))
