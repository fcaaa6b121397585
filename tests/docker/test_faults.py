"""Faults under load, one after another. Both judges judge each run.

The evidence is in the project's volumes, where Spark seals and judges it. The plain judge must give
the same verdicts for the same folder. `make test-docker` kills, pauses and cuts off the
controller, and pauses ZooKeeper. `make chaos-docker` uses three ZooKeeper members and a Spark
cluster. Its three runs each have one kind of fault (kill, pause or cut), which hits the
controller, another broker and ZooKeeper's leader; then all ZooKeeper members are paused.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bridgehead.application import module_command, module_environment
from bridgehead.cluster import ClientHistory
from demo.clients import Load
from tests.docker.compose import (
    WITHIN_S,
    ZOOKEEPER,
    ComposeCluster,
    begin_evidence,
    compose_cluster,
    copy_into,
    left_behind,
    wait_until,
)

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

RUN_ID = "compose-faults"
ENVIRONMENT = {
    "BRIDGEHEAD_SESSION_TIMEOUT_MS": "2000",
    "BRIDGEHEAD_RUN_ID": RUN_ID,
    "BRIDGEHEAD_SCENARIO": "kill-pause-cut",
    "BRIDGEHEAD_CONTROLLER_ID": "self",
    "ZOO_SYNC_LIMIT": "8",  # in ticks of 500 ms: a leader that is silent for 4 s is replaced
}
FAULTS = ("kill", "pause", "cut")
# The faults of brokers in the evidence. A container without a network is also cut from ZooKeeper.
ACTIONS = {"kill": "kill", "pause": "pause", "cut": "cut_from_zookeeper"}
# Where Spark runs: in the submitter's container, or on the project's master and two workers.
ALONE, CLUSTER = ("--no-deps", "--env=SPARK_MASTER=local[2]"), ()


def test_controller_faults_under_load_lose_nothing(images: None, tmp_path: Path) -> None:
    """After the controller's faults the test pauses ZooKeeper, too."""

    def break_it(cluster: ComposeCluster, load: Load, run: Path) -> None:
        for fault in FAULTS:
            _break_controller(fault, cluster, load, run)
        _stop_zookeeper_for_a_moment(cluster, load, ["zookeeper"])

    _run_and_judge(break_it, tmp_path, spark=ALONE)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("fault", FAULTS)
def test_all_faults_under_load_lose_nothing(images: None, tmp_path: Path, fault: str) -> None:
    """The fault hits the controller, another broker and ZooKeeper's leader, one after another.

    Then the test pauses all ZooKeeper members.
    """

    def break_it(cluster: ComposeCluster, load: Load, run: Path) -> None:
        _break_controller(fault, cluster, load, run)
        _break_broker(fault, cluster, load, run)
        _break_zookeeper_leader(fault, cluster, load)
        _stop_zookeeper_for_a_moment(cluster, load, ZOOKEEPER)

    _run_and_judge(break_it, tmp_path, "docker-compose.ensemble.yml", spark=CLUSTER)


def _run_and_judge(
    break_it: Callable[[ComposeCluster, Load, Path], None],
    folder: Path,
    *overrides: str,
    spark: Sequence[str],
) -> None:
    """Run clients during the faults. Both judges use the logs of all ZooKeeper members."""
    harness = begin_evidence(folder / "evidence", RUN_ID)
    run = folder / "evidence" / f"run={RUN_ID}"
    with compose_cluster(*overrides, environment=ENVIRONMENT) as cluster:
        cluster.harness = harness
        with ClientHistory(run, "load") as history:
            load = Load(cluster.bootstrap_servers.split(","), history, threads_per_broker=1)
            load.start()
            try:
                break_it(cluster, load, run)
            finally:
                load.stop()
        assert len(load.acknowledged) > 100
        by_spark = _judged_by_spark(cluster, run, folder, spark)
    assert left_behind(cluster.project) == ""
    judged = subprocess.run(
        module_command("judge", str(folder / "sealed" / run.name), "--json"),
        env=module_environment(),
        capture_output=True,
        check=False,
        text=True,
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr
    in_python = json.loads(judged.stdout)
    assert in_python["verdict"] == "PASS"
    assert by_spark == _verdicts(in_python)
    # No acknowledged write was lost, and every fault had an effect.
    assert {name: by_spark[name] for name in ("D1", "T1")} == {"D1": "PASS", "T1": "PASS"}


def _break_controller(fault: str, cluster: ComposeCluster, load: Load, run: Path) -> None:
    """Kill, pause or cut off the controller; wait for the next one."""
    controller, others = _in_order(cluster, load)
    commands = _commands(fault, cluster, f"kafka-{controller}")
    with cluster.fault(ACTIONS[fault], str(controller), *commands):
        cluster.wait_for_controller(*others, other_than=controller)
        if fault == "kill":
            cluster.note_end(controller, run)


def _break_broker(fault: str, cluster: ComposeCluster, load: Load, run: Path) -> None:
    """Break another broker; wait until the controller's Metadata no longer names it."""
    controller, others = _in_order(cluster, load)
    victim = others[0]
    commands = _commands(fault, cluster, f"kafka-{victim}")
    with cluster.fault(ACTIONS[fault], str(victim), *commands):
        wait_until(
            lambda: victim not in cluster.registered(controller),
            f"broker {victim} removed after {fault}",
        )
        if fault == "kill":
            cluster.note_end(victim, run)
        assert load.wait_for_more(10, timeout_s=WITHIN_S)


def _break_zookeeper_leader(fault: str, cluster: ComposeCluster, load: Load) -> None:
    """Break ZooKeeper's leader; wait until another member leads and clients succeed."""
    _in_order(cluster, load)
    leader = cluster.wait_for_ensemble()
    others = [member for member in ZOOKEEPER if member != leader]
    with cluster.fault(f"{fault}_zookeeper_leader", leader, *_commands(fault, cluster, leader)):
        wait_until(
            lambda: "leader" in {cluster.server_mode(member) for member in others},
            f"a new ZooKeeper leader after the {fault} of {leader}",
        )
        assert load.wait_for_more(30, timeout_s=WITHIN_S)
    cluster.wait_for_ensemble()


def _stop_zookeeper_for_a_moment(
    cluster: ComposeCluster, load: Load, members: Sequence[str]
) -> None:
    """Pause these members of ZooKeeper until broker 1 notices."""
    _in_order(cluster, load)
    containers = [cluster.container(member) for member in members]
    pause, unpause = ("pause", *containers), ("unpause", *containers)
    with cluster.fault("pause_quorum", "zookeeper", pause, unpause):
        disconnected = "kafka_server_sessionexpirelistener_connected 0.0"
        wait_until(lambda: disconnected in cluster.metrics(1), "broker 1 without ZooKeeper")
    _in_order(cluster, load)


def _in_order(cluster: ComposeCluster, load: Load) -> tuple[int, list[int]]:
    """Wait until all brokers know each other and the controller, and clients succeed."""
    wait_until(
        lambda: all(cluster.registered(broker) == {1, 2, 3} for broker in (1, 2, 3)),
        "three brokers that know each other",
    )
    controller = cluster.wait_for_controller()
    assert load.wait_for_more(30, timeout_s=WITHIN_S)
    return controller, [broker for broker in (1, 2, 3) if broker != controller]


def _commands(fault: str, cluster: ComposeCluster, service: str) -> Iterator[tuple[str, ...]]:
    """Return the commands that break and repair a service's container."""
    it, network = cluster.container(service), f"{cluster.project}_default"
    yield from {
        "kill": (("kill", it), ("start", it)),
        "pause": (("pause", it), ("unpause", it)),
        "cut": (
            ("network", "disconnect", network, it),
            ("network", "connect", f"--alias={service}", network, it),
        ),
    }[fault]


def _judged_by_spark(
    cluster: ComposeCluster, run: Path, folder: Path, spark: Sequence[str]
) -> dict[str, str]:
    """Stop the brokers, run the service `submitter`, and fetch its results."""
    assert cluster.harness is not None
    cluster.compose("stop", "kafka-1", "kafka-2", "kafka-3")
    for broker in (1, 2, 3):
        cluster.note_end(broker, run)
    cluster.harness.close("the run is over")
    for witness in ("harness=compose", "client=load"):
        copy_into(cluster, run, witness)
    name = f"{cluster.project}-judging"
    options = ("--no-TTY", f"--name={name}", *spark)
    try:
        cluster.compose("--profile", "pipeline", "run", *options, "submitter")
        (folder / "sealed").mkdir()
        cluster.docker("cp", f"{name}:/evidence/{run.name}", str(folder / "sealed"))
        cluster.docker("cp", f"{name}:/tables/verdicts.json", str(folder))
    finally:
        subprocess.run(["docker", "rm", "--force", "--volumes", name], check=False)
    (document,) = json.loads((folder / "verdicts.json").read_text())
    return _verdicts(document)


def _verdicts(document: dict[str, Any]) -> dict[str, str]:
    return {property_["property"]: property_["verdict"] for property_ in document["properties"]}
