"""Real clusters leave evidence that the judge can read, whatever became of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bridgehead.cluster import ClientHistory, Cluster, RunSettings
from chaos.evidence.finding import find_runs, read_run
from chaos.evidence.reading import Evidence, load_manifest
from chaos.history import History
from chaos.properties import PROPERTIES
from chaos.verdicts import Verdict, judge, worst
from tests.integration.conftest import StartCluster, ZooKeeperForTest

ROOT = Path(__file__).resolve().parents[2]
MUTANT_NODE = (sys.executable, str(Path(__file__).parent / "mutant_node.py"), "--mutants")
PROPERTIES_OF_BROKERS = {
    "zookeeper.session.timeout.ms": "2000",
    "bridgehead.metadata.controller.id": "self",
}
CREATE_TOPICS = 19


def _create(cluster: Cluster, broker_id: int, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_server(broker_id), "log_level": 0})
    with ClientHistory(cluster.evidence_dir, f"test-{names[0]}") as history:
        for name in names:
            with history.operation(CREATE_TOPICS, [name]) as operation:
                admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
                operation.told({name: 0})


def _verdicts(evidence: Evidence) -> dict[str, Verdict]:
    judgements = list(judge(History(evidence), PROPERTIES))
    return {each.property.id: each.verdict for each in judgements} | {"run": worst(judgements)}


def _program(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_an_ensemble_a_killed_controller_and_a_node_that_came_back(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """Three members' logs become one history; two lives of one broker are two boots."""
    cluster = start_cluster(
        brokers=2,
        zookeeper_members=3,
        data_dir=tmp_path,
        properties=PROPERTIES_OF_BROKERS,
        run=RunSettings(scenario="kill_the_controller", seed=7, operations_min=2),
    )
    first = cluster.wait_for_controller()
    _create(cluster, 3 - first, "before", "also-before")
    assert cluster.kill_controller() == first
    _create(cluster, 3 - first, "during", "one", "two")  # The first of them waits.
    second = cluster.wait_for_controller(other_than=first)
    assert second == 3 - first
    cluster.start_node(first)
    _create(cluster, first, "three")
    cluster.stop()
    evidence = read_run(tmp_path)
    (run,) = find_runs(tmp_path)
    assert load_manifest(run).zookeeper.members == 3
    assert not any(evidence.holes.values()), evidence.holes
    verdicts = _verdicts(evidence)
    assert (verdicts["T1"], verdicts["run"]) == (Verdict.PASS, Verdict.PASS), verdicts
    history = History(evidence)
    assert [term.epoch for term in history.terms] == [1, 2]
    ended = [e for e in history.of_kind["node_ended"] if e["ended_node"] == str(first)]
    assert [e["status"] for e in ended] == [-9, 0]
    assert [e["target"] for e in history.of_kind["fault_injected"]] == [str(first)]


def test_a_second_run_in_the_same_folder_is_judged_from_where_it_began(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """What the first run left in ZooKeeper is in the second one's first dump."""
    with Cluster(brokers=1, data_dir=tmp_path, properties=PROPERTIES_OF_BROKERS) as cluster:
        _create(cluster, 1, "old")
    with Cluster(brokers=1, data_dir=tmp_path, properties=PROPERTIES_OF_BROKERS) as cluster:
        _create(cluster, 1, "new")
    first, second = find_runs(tmp_path)
    evidence = read_run(second)
    assert "/brokers/topics/old" in evidence.first
    assert evidence.first_zxid > 0
    assert _verdicts(evidence)["run"] is Verdict.PASS, evidence.holes
    assert _verdicts(read_run(first))["run"] is Verdict.PASS


def test_an_external_zookeeper_is_judged_once_its_logs_are_named(
    zookeeper: ZooKeeperForTest, tmp_path: Path
) -> None:
    """Other tenants' transactions are in the same log; they are nobody's business here."""
    with Cluster(
        brokers=1,
        data_dir=tmp_path,
        zookeeper=zookeeper.connect,
        properties=PROPERTIES_OF_BROKERS,
    ) as cluster:
        _create(cluster, 1, "orders")
    verdicts = _verdicts(read_run(tmp_path))
    assert (verdicts["W1"], verdicts["run"]) == (Verdict.NODATA, Verdict.NODATA)
    assert verdicts["F1"] is Verdict.PASS
    logs = str(zookeeper.server.members[0].folder)
    sealed = _program("chaos.evidence", "seal", str(tmp_path), "--zookeeper-logs", logs)
    assert sealed.returncode == 0, sealed.stderr
    verdicts = _verdicts(read_run(tmp_path))
    assert verdicts["run"] is Verdict.PASS, verdicts


def test_znodes_that_only_brokers_may_read_are_dumped_too(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """With zookeeper.set.acl the dump comes as a broker does; no secret is in it."""
    credentials = {
        "zookeeper.set.acl": "true",
        "bridgehead.zookeeper.controller.credential": "controller:writes",
        "bridgehead.zookeeper.broker.credential": "broker:reads",
    }
    cluster = start_cluster(
        brokers=1, data_dir=tmp_path, properties={**PROPERTIES_OF_BROKERS, **credentials}
    )
    _create(cluster, 1, "orders")
    cluster.stop()
    evidence = read_run(tmp_path)
    assert evidence.final is not None
    assert evidence.final["/config/users"].data is None
    assert _verdicts(evidence)["run"] is Verdict.PASS
    (run,) = find_runs(tmp_path)
    assert not any(b"broker:reads" in path.read_bytes() for path in run.rglob("*.json*"))


def test_a_run_whose_supervisor_was_killed_can_be_sealed_and_is_not_green(
    tmp_path: Path,
) -> None:
    """How its nodes ended is not recorded, so nobody knows what they did not write down."""
    cluster = Cluster(brokers=1, data_dir=tmp_path, properties=PROPERTIES_OF_BROKERS)
    cluster.start()
    try:
        _create(cluster, 1, "orders")
        assert read_run(tmp_path).unsealed
        supervisor = int((tmp_path / "supervisor.pid").read_text())
        os.kill(supervisor, signal.SIGKILL)
    finally:
        cluster.stop()
    refused = _program("bridgehead.cli.main", "evidence", "seal", str(tmp_path))
    assert refused.returncode == 0, refused.stderr
    verdicts = _verdicts(read_run(tmp_path))
    assert (verdicts["K3"], verdicts["run"]) == (Verdict.UNKNOWN, Verdict.UNKNOWN)
    assert verdicts["W2"] is Verdict.PASS


def test_the_evidence_of_a_running_cluster_is_not_sealed(tmp_path: Path) -> None:
    """It would be refused a moment later, having grown."""
    with Cluster(brokers=1, data_dir=tmp_path, properties=PROPERTIES_OF_BROKERS):
        refused = _program("bridgehead.cli.main", "evidence", "seal", str(tmp_path))
    assert refused.returncode == 2
    assert "`bridgehead down` seals its run" in refused.stderr


def test_a_controller_without_a_fence_is_caught(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """The seeded bug needs no failover to be seen."""
    cluster = start_cluster(
        brokers=1,
        data_dir=tmp_path,
        properties=PROPERTIES_OF_BROKERS,
        node_command=(*MUTANT_NODE, "fence_off"),
    )
    _create(cluster, 1, "orders")
    cluster.stop()
    judged = _program("chaos.judge", str(tmp_path), "--json")
    assert judged.returncode == 1
    document: dict[str, Any] = json.loads(judged.stdout)
    failed = [row["property"] for row in document["properties"] if row["verdict"] == "FAIL"]
    assert failed == ["W2"]
