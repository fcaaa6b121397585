"""What a broker does in each state of the znodes of its registration."""

from __future__ import annotations

from typing import Any

import pytest

from broker_proxy.metadata.registration import Registration
from cluster_model.image import BrokerRegistration, Endpoint
from cluster_model.znodes.layout import NodeAddress
from cluster_model.znodes.operations import Create, Delete, Operation, SetData
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
    ("stats", "is_intact", "foreign", "written"),
    [
        ((stat(1), stat(0)), True, None, ""),
        ((None, None), False, None, "create ids, set ids, create nodes"),
        ((None, stat(0)), False, None, "create ids, set ids"),
        ((stat(1), None), False, None, "create nodes"),
        ((stat(2), stat(0)), False, None, "delete ids, create ids, set ids"),
        ((stat(1), stat(1)), False, None, "delete nodes, create nodes"),
        ((stat(2), None), False, None, "delete ids, create ids, set ids, create nodes"),
        ((stat(1, OTHER), stat(0)), False, BROKER, None),
        ((stat(1), stat(0, OTHER)), False, NODE, None),
        ((stat(1, owner=0), None), False, BROKER, None),
    ],
)
def test_a_registration_that_is_not_intact_is_written_again(
    stats: Any, is_intact: bool, foreign: str | None, written: str | None
) -> None:
    """An intact znode stays: with zookeeper.set.acl, the broker session cannot delete znodes."""
    assert REGISTRATION.is_intact(stats, OWN) == is_intact
    assert REGISTRATION.foreign(stats, OWN) == foreign
    if written is not None:
        operations = REGISTRATION.operations(stats, now_ms=1)
        assert ", ".join(map(described, operations)) == written


def described(operation: Operation) -> str:
    match operation:
        case Create(path, data, ephemeral=True):
            assert (data is None) == (path == BROKER)
        case SetData(path, version=0) | Delete(path):
            pass
        case _:
            raise AssertionError(operation)
    word = {Create: "create", SetData: "set", Delete: "delete"}[type(operation)]
    return f"{word} {path.split('/')[2]}"
