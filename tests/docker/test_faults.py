"""Kill, pause and disconnect the controller, then stop ZooKeeper: under load, judged twice.

The evidence is in the project's volumes. There the service `submitter` seals it and judges it on
Spark; the plain judge must say the same of the same folder.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridgehead.application import module_command, module_environment
from bridgehead.cluster import ClientHistory
from chaos.demo.clients import Load
from tests.docker.compose import (
    WITHIN_S,
    ComposeCluster,
    begin_evidence,
    compose_cluster,
    copy_into,
    left_behind,
    wait_until,
)

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

RUN_ID = "compose-faults"
TOLD = {
    "BRIDGEHEAD_SESSION_TIMEOUT_MS": "2000",
    "BRIDGEHEAD_RUN_ID": RUN_ID,
    "BRIDGEHEAD_SCENARIO": "kill-pause-disconnect",
    "BRIDGEHEAD_CONTROLLER_ID": "self",
}
FAULTS = ("kill", "freeze", "disconnect")


def test_kill_pause_and_disconnect_under_load_lose_nothing(images: None, tmp_path: Path) -> None:
    """By the nodes' events, the clients' history and ZooKeeper's own log."""
    harness = begin_evidence(tmp_path / "evidence", RUN_ID)
    run = tmp_path / "evidence" / f"run={RUN_ID}"
    with compose_cluster(environment=TOLD) as cluster:
        cluster.harness = harness
        with ClientHistory(run, "load") as history:
            load = Load(cluster.bootstrap_servers.split(","), history, threads_per_broker=1)
            load.start()
            try:
                for fault in FAULTS:
                    _break_controller(fault, cluster, load, run)
                _stop_zookeeper_for_a_moment(cluster, load)
            finally:
                load.stop()
        assert len(load.acknowledged) > 100
        by_spark = _judged_by_spark(cluster, run, tmp_path)
    assert left_behind(cluster.project) == ""
    judged = subprocess.run(
        module_command("chaos.judge", str(tmp_path / "sealed" / run.name), "--json"),
        env=module_environment(),
        capture_output=True,
        check=False,
        text=True,
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr
    in_python = json.loads(judged.stdout)
    assert in_python["verdict"] == "PASS"
    assert by_spark == _verdicts(in_python)
    # No acknowledged write was lost, and every fault bit.
    assert {each: by_spark[each] for each in ("D1", "T1")} == {"D1": "PASS", "T1": "PASS"}


def _break_controller(fault: str, cluster: ComposeCluster, load: Load, run: Path) -> None:
    """Until another one is in office."""
    controller, others = _in_order(cluster, load)
    with cluster.fault(fault, str(controller), *_commands(fault, cluster, f"kafka-{controller}")):
        cluster.wait_for_controller(*others, other_than=controller)
        if fault == "kill":
            cluster.note_end(controller, run)


def _stop_zookeeper_for_a_moment(cluster: ComposeCluster, load: Load) -> None:
    """Until a broker misses it."""
    _in_order(cluster, load)
    it = cluster.container("zookeeper")
    with cluster.fault("freeze_zookeeper", "zookeeper", ("pause", it), ("unpause", it)):
        missed = "kafka_server_sessionexpirelistener_connected 0.0"
        wait_until(lambda: missed in cluster.metrics(1), "broker 1 misses ZooKeeper")
    _in_order(cluster, load)


def _in_order(cluster: ComposeCluster, load: Load) -> tuple[int, list[int]]:
    """Once all brokers know each other and one controller, and clients get on."""
    wait_until(
        lambda: all(cluster.registered(broker) == {1, 2, 3} for broker in (1, 2, 3)),
        "three brokers that know each other",
    )
    controller = cluster.wait_for_controller()
    assert load.wait_for_more(30, timeout_s=WITHIN_S)
    return controller, [broker for broker in (1, 2, 3) if broker != controller]


def _commands(fault: str, cluster: ComposeCluster, service: str) -> Iterator[tuple[str, ...]]:
    """What breaks a service's container, and what mends it."""
    it, network = cluster.container(service), f"{cluster.project}_default"
    yield from {
        "kill": (("kill", it), ("start", it)),
        "freeze": (("pause", it), ("unpause", it)),
        "disconnect": (
            ("network", "disconnect", network, it),
            ("network", "connect", f"--alias={service}", network, it),
        ),
    }[fault]


def _judged_by_spark(cluster: ComposeCluster, run: Path, folder: Path) -> dict[str, str]:
    """Stop the brokers, let the service `submitter` do its work, fetch what it left."""
    assert cluster.harness is not None
    cluster.compose("stop", "kafka-1", "kafka-2", "kafka-3")
    for broker in (1, 2, 3):
        cluster.note_end(broker, run)
    cluster.harness.close("the run is over")
    for witness in ("harness=compose", "client=load"):
        copy_into(cluster, run, witness)
    name = f"{cluster.project}-judging"
    told = ("--no-TTY", f"--name={name}", "--no-deps", "--env=SPARK_MASTER=local[2]")
    try:
        cluster.compose("--profile", "pipeline", "run", *told, "submitter")
        (folder / "sealed").mkdir()
        cluster.docker("cp", f"{name}:/evidence/{run.name}", str(folder / "sealed"))
        cluster.docker("cp", f"{name}:/tables/verdicts.json", str(folder))
    finally:
        subprocess.run(["docker", "rm", "--force", "--volumes", name], check=False)
    (document,) = json.loads((folder / "verdicts.json").read_text())
    return _verdicts(document)


def _verdicts(document: dict[str, Any]) -> dict[str, str]:
    return {each["property"]: each["verdict"] for each in document["properties"]}
