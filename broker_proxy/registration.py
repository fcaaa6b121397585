"""What a broker writes: its registration, and nothing else (design 5.1). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from cluster_model.image import BrokerRegistration
from cluster_model.znode_operations import Create, Operation, SetData
from cluster_model.znodes import BrokerIdZnode, NodeAddress, NodeZnode


def registration_operations(
    registration: BrokerRegistration, address: NodeAddress, now_ms: int
) -> Sequence[Operation]:
    """Return the one multi with which a broker announces itself, both znodes ephemeral.

    Created empty and then set, as Kafka does, so that the data version of /brokers/ids/<id> is 1;
    its czxid is the broker epoch (kafka-semantics 2.5).
    """
    path = BrokerIdZnode.path(registration.broker_id)
    return (
        Create(path, None, ephemeral=True),
        SetData(path, BrokerIdZnode.encode(registration, now_ms), 0),
        Create(NodeZnode.path(registration.broker_id), NodeZnode.encode(address), ephemeral=True),
    )
