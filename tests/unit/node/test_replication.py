"""After an update of the metadata, the data plane does only what the changes require."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from data_plane.partitions import Partitions
from node.assembly.replication import Replication


@pytest.mark.parametrize(
    ("live", "advances"), [((1, 2, 3), False), ((1, 2), True), ((1, 2, 3, 4), True)]
)
def test_a_change_of_the_live_brokers_advances_every_high_watermark(
    live: tuple[int, ...], advances: bool
) -> None:
    """A high watermark can wait for a live follower outside the ISR, until that broker stops.

    If a partition's own state changes, `Partition.apply` advances its high watermark.
    """
    seen: list[str] = []
    partitions = Partitions(1, *cast(Any, (None, None, None, None)))
    partitions.by_name[("a", 0)] = cast(
        Any, SimpleNamespace(advance_high_watermark=lambda: seen.append("a-0"))
    )
    fetchers = SimpleNamespace(roles_changed=lambda: None)
    replication = Replication(partitions, cast(Any, fetchers), cast(Any, None))
    replication.metadata_changed((1, 2, 3))
    seen.clear()
    replication.metadata_changed(live)
    assert seen == (["a-0"] if advances else [])
