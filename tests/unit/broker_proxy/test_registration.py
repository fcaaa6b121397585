"""What a broker does in each state of the znodes of its registration."""

from __future__ import annotations

from typing import Any

import pytest

from broker_proxy.registration import Registration
from cluster_model.image import BrokerRegistration, Endpoint
from cluster_model.znode_operations import Create, Delete, SetData
from cluster_model.znodes import NodeAddress
from zookeeper_client.wire import Stat

OWN, OTHER = 2**63 + 5, 7  # ZooKeeper's stats have signed ids
BROKER, NODE = "/brokers/ids/3", "/bridgehead/nodes/3"
REGISTRATION = Registration(
    BrokerRegistration(3, -1, (Endpoint("PLAINTEXT", "PLAINTEXT", "h", 9092),), None),
    NodeAddress("h:1", "inc"),
)


def stat(version: int, owner: int = OWN) -> Stat:
    signed = owner - 2**64 if owner >= 2**63 else owner
    return Stat._make((0,) * len(Stat._fields))._replace(version=version, ephemeral_owner=signed)


@pytest.mark.parametrize(
    ("found", "is_intact", "foreign", "deleted"),
    [
        ((stat(1), stat(0)), True, None, [BROKER, NODE]),
        ((None, None), False, None, []),
        ((None, stat(0)), False, None, [NODE]),
        ((stat(1), None), False, None, [BROKER]),
        ((stat(2), stat(0)), False, None, [BROKER, NODE]),
        ((stat(1), stat(1)), False, None, [BROKER, NODE]),
        ((stat(1, OTHER), stat(0)), False, BROKER, None),
        ((stat(1), stat(0, OTHER)), False, NODE, None),
        ((stat(1, owner=0), None), False, BROKER, None),
    ],
)
def test_a_registration_that_is_not_intact_is_written_again(
    found: Any, is_intact: bool, foreign: str | None, deleted: list[str] | None
) -> None:
    assert REGISTRATION.is_intact(found, OWN) == is_intact
    assert REGISTRATION.foreign(found, OWN) == foreign
    if deleted is not None:
        *deletions, create, set_data, node = REGISTRATION.operations(found, now_ms=1)
        assert deletions == [Delete(path) for path in deleted]
        assert create == Create(BROKER, None, ephemeral=True)
        assert isinstance(set_data, SetData)
        assert set_data.version == 0
        assert isinstance(node, Create)
        assert (node.path, node.ephemeral) == (NODE, True)
