"""When /controller is deleted or overwritten by hand, the active controller resigns at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from bridgehead.application import module_command
from bridgehead.cluster import Cluster
from demo.request_trace import read_events
from judge.verdicts import Verdict
from tests.integration.pipeline_runs import failed, judged
from tests.integration.secured import Secured
from tests.integration.zookeeper_peers import kazoo_client

ACTIVE = "kafkacontroller_activecontrollercount"
MUTANT_NODE = module_command("chaos.mutant_node", "--mutants")
# The tests themselves violate these properties (docs/properties.md), because they write in a
# session that belongs to no node.
VIOLATED_BY_HAND = {"W5", "W6"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(brokers=3, data_dir=tmp_path_factory.mktemp("cluster")) as started:
        yield started


def change_controller(cluster: Cluster, change: Callable[[KazooClient], None]) -> None:
    with kazoo_client(cluster.zookeeper_connect) as zookeeper:
        change(zookeeper)


def delete(zookeeper: KazooClient) -> None:
    zookeeper.delete("/controller")


def delete_twice(zookeeper: KazooClient) -> None:
    """Delete the znode; delete it again while the next controller loads its state."""
    delete(zookeeper)
    while zookeeper.exists("/controller") is None:
        pass
    delete(zookeeper)


def name_another_broker(zookeeper: KazooClient) -> None:
    """Name a broker that does not exist. The znode still belongs to the controller's session."""
    data = zookeeper.get("/controller")[0].decode()
    zookeeper.set("/controller", data.replace('"brokerid":', '"brokerid":9').encode())


def write_invalid_json(zookeeper: KazooClient) -> None:
    zookeeper.set("/controller", b"{")


@pytest.mark.parametrize(
    "change",
    [
        delete,
        *(
            pytest.param(damage, marks=pytest.mark.long)
            for damage in (name_another_broker, write_invalid_json, delete_twice)
        ),
    ],
)
def test_the_active_controller_resigns_at_once(
    cluster: Cluster, change: Callable[[KazooClient], None]
) -> None:
    """From one second after the change on, at most one node is active.

    At the end one node is active, with a new epoch.
    """
    cluster.wait_for_controller()
    pages = [broker.metrics_url for broker in cluster.brokers.values()]
    assert len(pages) == 3
    before = cluster.status()["controller_epoch"]
    change_controller(cluster, change)
    changed = time.monotonic()
    counts = []
    while (elapsed := time.monotonic() - changed) < 5:
        values = [Secured.metric_of(cluster, broker, ACTIVE) for broker in (1, 2, 3)]
        if elapsed > 1:
            counts.append(sum(values))
    assert max(counts) == 1.0 == counts[-1]
    assert cluster.status()["controller_epoch"] == before + 1 + (change is delete_twice)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    name = f"after-{before}"
    admin.create_topics([NewTopic(name, 1, 1)], request_timeout=60)[name].result()


def test_the_judge_finds_every_resignation(cluster: Cluster) -> None:
    """The test judges the run in which the tests above deleted and changed the znode."""
    cluster.stop()
    judgements = judged(cluster.data_dir)
    events = list(read_events(cluster.evidence_dir))
    images = [e for e in events if (e["kind"], e.get("side")) == ("image_advanced", "broker")]
    assert {e["node"] for e in images if e["epoch"] > 1} == {"1", "2", "3"}
    assert (judgements["K7"].row.verdict, judgements["K7"].row.judged) == (
        Verdict.PASS,
        len(images),
    )
    assert failed(judgements) == VIOLATED_BY_HAND


def test_controller_that_stays_active_fails_k7(tmp_path: Path) -> None:
    """With the seeded bug a superseded controller does not resign (K7, docs/properties.md)."""
    mutant = (*MUTANT_NODE, "never_superseded")
    with Cluster(brokers=2, data_dir=tmp_path, node_command=mutant) as cluster:
        former = cluster.wait_for_controller()
        change_controller(cluster, delete)
        deadline = time.monotonic() + 30
        while not _applied_epoch(cluster, node=str(former), epoch=2):
            assert time.monotonic() < deadline, "no broker became the next controller"
            time.sleep(0.05)
    judgements = judged(tmp_path)
    assert failed(judgements) == {*VIOLATED_BY_HAND, "K7"}
    assert judgements["K7"].row.why == (
        f"broker {former} applied metadata of epoch 2, but had not resigned as controller of "
        "epoch 1"
    )


def _applied_epoch(cluster: Cluster, *, node: str, epoch: int) -> bool:
    images = (e for e in read_events(cluster.evidence_dir) if e["kind"] == "image_advanced")
    return any((e["node"], e["side"], e["epoch"]) == (node, "broker", epoch) for e in images)
