"""The content of a partition's state znode; equal contents are decoded and encoded once."""

from __future__ import annotations

import pytest

from cluster_model.records import PartitionState
from cluster_model.znodes.layout import PartitionZnode
from cluster_model.znodes.values import ZnodeContentError

STATE = PartitionState(leader=1, leader_epoch=2, isr=(1, 3), controller_epoch=5, partition_epoch=0)


@pytest.mark.parametrize(
    "state",
    [
        STATE,
        STATE._replace(recovering=True),
        STATE._replace(isr=(3, 1)),
        STATE._replace(leader=-1, isr=()),
    ],
)
def test_a_state_is_read_as_it_was_written(state: PartitionState) -> None:
    assert PartitionZnode.decode("t", 0, PartitionZnode.encode(state), 0) == state


def test_states_with_equal_content_have_the_versions_of_their_znodes() -> None:
    content = PartitionZnode.encode(STATE)
    states = [PartitionZnode.decode("t", number, content, version=number) for number in range(3)]
    assert [state.partition_epoch for state in states] == [0, 1, 2]


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"null", b"{}", b'{"leader":"x"}'])
def test_an_invalid_state_is_rejected_with_its_own_path(content: bytes | None) -> None:
    for number in (0, 1):
        path = f"^/brokers/topics/t/partitions/{number}/state: "
        with pytest.raises(ZnodeContentError, match=path):
            PartitionZnode.decode("t", number, content, 0)
