"""Keeps a broker's configs current: users, client ids and addresses in full, then all changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from broker_proxy.metadata.change_follower import (
    ChangeFollower,
    Notifications,
    Watch,
    log_invalid,
)
from cluster_model.records import ConfigResource
from cluster_model.znodes.layout import CONFIG_TYPES, DEFAULT_ENTITY, ConfigChangeZnode
from zookeeper_client.config_reading import StoredConfigs, read_configs, read_some_configs
from zookeeper_client.session import ZooKeeperSession
from zookeeper_client.wire import ReadChildren, ReadMany

Configs = Mapping[str, str]


class ConfigFollower:
    """Reads the configs. ZooKeeperWatcher calls it after each connect and when a watch fires."""

    def __init__(
        self,
        changed: Callable[[ConfigResource, Configs], None],
        read_in_full: Mapping[str, Callable[[Mapping[str, Configs]], None]],
    ) -> None:
        """`read_in_full` has a callback for each entity type that is read in each new session.

        It gets the configs of all entities by their names in ZooKeeper.
        """
        self._changed = changed
        self._read_in_full = read_in_full
        self._read_in: ZooKeeperSession | None = None
        self._known: set[ConfigResource] = set()  # those that had configs when they were read
        self._changes = ChangeFollower(
            Notifications(
                ConfigChangeZnode.prefix,
                ConfigChangeZnode.decode,
                "this broker misses config changes until it exists again",
            ),
            self._read_some,
            changed,
            self._read_all,
            in_each_session=False,
        )

    async def follow(
        self, session: ZooKeeperSession, again: Watch | None, *, connected: bool = False
    ) -> None:
        """Apply changed configs. `again`, if given, is called at the next change.

        `connected` is True when the session has just connected or reconnected. Notifications sent
        while there was no session may have been purged. A new session therefore reads all users,
        client ids and addresses. Configs of brokers and topics are not read again: their changes
        are learned only from notifications.

        Raises:
            ConnectionLostError: the connection broke. The next call reads the same changes again.
        """
        if connected and session is not self._read_in:
            await self._read(session.read, tuple(self._read_in_full))
            self._read_in = session
        await self._changes.follow(session, again)

    async def _read(self, read: ReadMany, entity_types: Sequence[str]) -> StoredConfigs:
        stored = await read_configs(read, entity_types)
        log_invalid(stored.invalid)
        self._known |= stored.configs.keys()
        for entity_type, all_read in self._read_in_full.items():
            all_read(
                {
                    resource.entity_name: configs
                    for resource, configs in stored.configs.items()
                    if resource.entity_type == entity_type
                }
            )
        return stored

    async def _read_all(self, read: ReadMany) -> None:
        """Read and apply all configs, including those that were removed."""
        stored = await self._read(read, CONFIG_TYPES)
        topics, brokers = await read(
            [ReadChildren("/brokers/topics"), ReadChildren("/brokers/ids")]
        )
        # The configs of topics and brokers are also read elsewhere, when a broker starts.
        resources = self._known | {
            *(ConfigResource("topics", str(name)) for name in topics or ()),
            *(ConfigResource("brokers", str(name)) for name in (*(brokers or ()), DEFAULT_ENTITY)),
        }
        for resource in sorted(resources):
            self._changed(resource, stored.configs.get(resource, {}))
        self._known = set(stored.configs)

    async def _read_some(
        self, read: ReadMany, resources: Sequence[ConfigResource]
    ) -> Mapping[ConfigResource, Configs]:
        stored = await read_some_configs(read, resources)
        log_invalid(stored.invalid)
        self._known |= stored.configs.keys()
        return {resource: stored.configs.get(resource, {}) for resource in resources}
