"""The registration of a broker: the only two znodes that the broker session writes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cluster_model.image import BrokerRegistration
from cluster_model.znodes.layout import BrokerIdZnode, NodeAddress, NodeZnode
from cluster_model.znodes.operations import Create, Delete, Operation, SetData
from zookeeper_client.wire import Stat

# The data versions that the two znodes have after `operations`.
_VERSIONS: Final = (1, 0)


@dataclass(frozen=True, slots=True)
class Registration:
    """Two ephemeral znodes.

    In the methods, `found` has the stat of each of `paths`, or None for a missing znode.
    """

    broker: BrokerRegistration
    address: NodeAddress

    @property
    def paths(self) -> tuple[str, str]:
        """The paths of /brokers/ids/<id> and /bridgehead/nodes/<id>."""
        broker_id = self.broker.broker_id
        return BrokerIdZnode.path(broker_id), NodeZnode.path(broker_id)

    @property
    def parents(self) -> tuple[str, ...]:
        """The paths of the folders of the two znodes."""
        return tuple(path.rpartition("/")[0] for path in self.paths)

    def foreign(self, stats: Sequence[Stat | None], session_id: int) -> str | None:
        """Return the path of a znode that another session owns, None if there is none."""
        for path, stat in zip(self.paths, stats, strict=True):
            if stat is not None and stat.ephemeral_owner & (2**64 - 1) != session_id:
                return path
        return None

    def is_intact(self, stats: Sequence[Stat | None], session_id: int) -> bool:
        """Return whether this session owns both znodes and nobody has changed them."""
        return all(_as_written(stats)) and self.foreign(stats, session_id) is None

    def operations(self, stats: Sequence[Stat | None], now_ms: int) -> Sequence[Operation]:
        """Return the multi that registers the broker. This session owns all znodes in `found`.

        An unchanged znode stays. A znode that was changed is deleted and created again. With
        `zookeeper.set.acl`, ZooKeeper rejects a multi with such a deletion: the broker session must
        not delete znodes.

        As in Kafka, /brokers/ids/<id> is created empty and then set, so it has data version 1. Its
        czxid is the broker epoch (docs/kafka/znodes.md#broker-registration).
        """
        broker, node = self.paths
        creations: tuple[Sequence[Operation], ...] = (
            (
                Create(broker, None, ephemeral=True),
                SetData(broker, BrokerIdZnode.encode(self.broker, now_ms), 0),
            ),
            (Create(node, NodeZnode.encode(self.address), ephemeral=True),),
        )
        operations: list[Operation] = []
        znodes = zip(self.paths, stats, _as_written(stats), creations, strict=True)
        for path, stat, is_as_written, creation in znodes:
            if not is_as_written:
                operations += [Delete(path)] if stat is not None else []
                operations += creation
        return operations


def _as_written(stats: Sequence[Stat | None]) -> list[bool]:
    versions = [stat.version if stat is not None else None for stat in stats]
    return [
        version == written_version
        for version, written_version in zip(versions, _VERSIONS, strict=True)
    ]
