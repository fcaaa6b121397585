"""After an update of the metadata, the data plane does only what the changes require."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from data_plane.partitions import Partitions
from envelope.channel_security import ChannelFiles
from metrics import names
from metrics.node_metrics import NodeMetrics
from node.assembly.replication import Replication, _register_gauges, epoch_for_leaders
from node.assembly.replication_listener import listener_properties
from node.run.lifecycle import Node
from tests.unit.data_plane.logs import TOPIC_ID, directories
from tests.unit.data_plane.replicas import Isrs, View


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


def test_the_gauges_count_the_partitions_that_this_broker_leads(tmp_path: Path) -> None:
    here = directories(tmp_path, min_insync_replicas=2)
    partitions = Partitions(1, here, *cast(Any, (None, None, Isrs())))
    views = [
        View(1, 0, 0, (1, 2, 3)),
        View(1, 0, 0, (1, 2)),
        View(1, 0, 0, (1,)),
        View(1, 0, 0, (1,), replicas=(1,)),
        View(2, 0, 0, (2,)),
    ]
    topic = SimpleNamespace(topic_id=TOPIC_ID, partitions=dict(enumerate(views)))
    partitions.apply({"t": topic}, ["t"])
    metrics = NodeMetrics(CollectorRegistry(), now_s=lambda: 0.0)
    _register_gauges(partitions, metrics)
    values = metrics.snapshot()
    counted = {
        names.PARTITIONS: 5,
        names.LEADERS: 4,
        names.UNDER_REPLICATED: 2,
        names.UNDER_MIN_ISR: 1,
        names.AT_MIN_ISR: 2,
    }
    assert {metric: values[metric.name] for metric in counted} == counted


def test_leaders_are_told_the_epoch_that_their_controller_knows() -> None:
    cache: Any = SimpleNamespace(controller_is_kraft=False)
    epoch = epoch_for_leaders(cache, lambda: 0x2_0000_0113, lambda: 41)
    assert epoch() == 0x2_0000_0113
    cache.controller_is_kraft = True
    assert epoch() == 41


@pytest.mark.parametrize("forwards_to_kraft", [True, False])
async def test_broker_follows_no_leader_while_a_controller_moves_its_leaderships(
    forwards_to_kraft: bool,
) -> None:
    """Else its leaders wait for it, a caught-up follower, after it has gone."""
    done: list[str] = []

    async def stop_following() -> None:
        done.append("stop following")

    async def leave() -> None:
        done.append("leave")

    parts = SimpleNamespace(
        broker=SimpleNamespace(data_plane=SimpleNamespace(stop_following=stop_following)),
        follower=SimpleNamespace(forwards_to_kraft=forwards_to_kraft),
        migration=SimpleNamespace(leave=leave),
    )
    await Node._leave(cast(Any, SimpleNamespace(_parts=parts)))
    assert done == (["stop following", "leave"] if forwards_to_kraft else [])


# The listener that a broker opens for other brokers.


def test_text_around_the_certificates_may_have_any_characters(tmp_path: Path) -> None:
    """`openssl pkcs12` writes the names of certificates before their PEM blocks."""
    block = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    file = tmp_path / "c.pem"
    file.write_text(f"friendlyName: Büro\n{block}", encoding="utf-8")
    properties = listener_properties(ChannelFiles(str(file), str(file), str(file)))
    assert properties["ssl.keystore.certificate.chain"] == f"friendlyName: Bro\n{block}"
