"""The registration of a broker, the only znodes that it writes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from cluster_model.image import BrokerRegistration
from cluster_model.znode_operations import Create, Operation, SetData
from cluster_model.znodes import BrokerIdZnode, NodeAddress, NodeZnode


def registration_operations(
    registration: BrokerRegistration, address: NodeAddress, now_ms: int
) -> Sequence[Operation]:
    """Return the multi that registers a broker; both znodes are ephemeral.

    As in Kafka the znode is created empty and then set, so that /brokers/ids/<id> has data
    version 1; its czxid is the broker epoch (docs/kafka/znodes.md#broker-registration).
    """
    path = BrokerIdZnode.path(registration.broker_id)
    return (
        Create(path, None, ephemeral=True),
        SetData(path, BrokerIdZnode.encode(registration, now_ms), 0),
        Create(NodeZnode.path(registration.broker_id), NodeZnode.encode(address), ephemeral=True),
    )
