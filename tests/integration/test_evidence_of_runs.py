"""Real clusters leave evidence that the judge can read, even after crashes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from psutil import process_iter

from bridgehead.application import module_command
from bridgehead.cluster import ClientHistory, Cluster, RunSettings
from bridgehead.cluster.errors import ClusterError
from bridgehead.exit_codes import ExitCode
from judge.evidence.reading import Evidence
from judge.evidence.run_files import EvidenceError
from judge.evidence.run_lookup import find_runs, read_run
from judge.history import History
from judge.seals import SIGNATURE, Seal, SealRules, read_key
from judge.verdicts import Verdict, judge, worst
from tests.integration.conftest import StartCluster, ZooKeeperForTest

ROOT = Path(__file__).resolve().parents[2]
MUTANT_NODE = module_command("chaos.mutant_node", "--mutants")
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
                operation.completed({name: 0})


def _verdicts(evidence: Evidence) -> dict[str, Verdict]:
    rows = [judgement.row for judgement in judge(History(evidence))]
    return {row.property: row.verdict for row in rows} | {"run": worst(rows)}


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


@pytest.mark.long
def test_run_with_an_ensemble_and_a_restarted_controller_is_judged(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """The logs of three ZooKeeper members are merged. The restarted broker has two boots."""
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
    _create(
        cluster, 3 - first, "during", "one", "two"
    )  # The first creation waits for the next controller.
    second = cluster.wait_for_controller(other_than=first)
    assert second == 3 - first
    cluster.start_node(first)
    _create(cluster, first, "three")
    cluster.stop()
    evidence = read_run(tmp_path)
    assert evidence.manifest.zookeeper.members == 3
    assert not any(evidence.gaps.values()), evidence.gaps
    verdicts = _verdicts(evidence)
    assert (verdicts["T1"], verdicts["run"]) == (Verdict.PASS, Verdict.PASS), verdicts
    history = History(evidence)
    assert [term.epoch for term in history.terms] == [1, 2]
    ended = [e for e in history.of_kind["node_ended"] if e["ended_node"] == str(first)]
    assert [e["status"] for e in ended] == [-9, 0]
    assert [e["target"] for e in history.of_kind["fault_injected"]] == [str(first)]


@pytest.mark.long
def test_second_run_in_a_folder_begins_with_a_dump_of_the_first_runs_znodes(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    with Cluster(brokers=1, data_dir=tmp_path, properties=PROPERTIES_OF_BROKERS) as cluster:
        _create(cluster, 1, "old")
    with Cluster(brokers=1, data_dir=tmp_path, properties=PROPERTIES_OF_BROKERS) as cluster:
        _create(cluster, 1, "new")
    first, second = find_runs(tmp_path)
    evidence = read_run(second)
    assert "/brokers/topics/old" in evidence.first
    assert evidence.manifest.zookeeper.first_zxid > 0
    assert _verdicts(evidence)["run"] is Verdict.PASS, evidence.gaps
    assert _verdicts(read_run(first))["run"] is Verdict.PASS


def test_external_zookeeper_is_judged_when_its_logs_are_named(
    zookeeper: ZooKeeperForTest, tmp_path: Path
) -> None:
    """The log also has transactions of other tests, outside the chroot."""
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
    sealed = _program("judge.evidence", "seal", str(tmp_path), "--zookeeper-logs", logs)
    assert sealed.returncode == 0, sealed.stderr
    verdicts = _verdicts(read_run(tmp_path))
    assert verdicts["run"] is Verdict.PASS, verdicts


CREDENTIALS = {
    "bridgehead.zookeeper.controller.credential": "controller:writes",
    "bridgehead.zookeeper.broker.credential": "broker:reads",
}


@pytest.mark.parametrize("credentials", [CREDENTIALS, {}], ids=["configured", "created"])
def test_dump_of_protected_znodes_has_no_secrets(
    start_cluster: StartCluster, tmp_path: Path, credentials: dict[str, str]
) -> None:
    """With zookeeper.set.acl the dump is read with the broker's credential."""
    properties = {**PROPERTIES_OF_BROKERS, "zookeeper.set.acl": "true", **credentials}
    cluster = start_cluster(brokers=1, data_dir=tmp_path, properties=properties)
    _create(cluster, 1, "orders")
    cluster.stop()
    evidence = read_run(tmp_path)
    assert evidence.final is not None
    assert evidence.final["/config/users"].data is None
    assert _verdicts(evidence)["run"] is Verdict.PASS
    if not credentials:
        credentials = json.loads((tmp_path / "channel" / "zookeeper.json").read_text())
    secret = credentials["bridgehead.zookeeper.broker.credential"].encode()
    (run,) = find_runs(tmp_path)
    assert not any(secret in path.read_bytes() for path in run.rglob("*.json*"))


def test_run_of_a_killed_supervisor_can_be_sealed_and_is_unknown(
    tmp_path: Path,
) -> None:
    """The verdict is UNKNOWN, because the killed supervisor did not record how the nodes ended."""
    cluster = Cluster(brokers=1, data_dir=tmp_path, properties=PROPERTIES_OF_BROKERS)
    cluster.start()
    try:
        _create(cluster, 1, "orders")
        assert read_run(tmp_path).seal is Seal.UNSEALED
        supervisor = int((tmp_path / "supervisor.pid").read_text())
        os.kill(supervisor, signal.SIGKILL)
    finally:
        cluster.stop()
    sealed = _program("bridgehead.cli.main", "evidence", "seal", str(tmp_path))
    assert sealed.returncode == 0, sealed.stderr
    verdicts = _verdicts(read_run(tmp_path))
    assert (verdicts["K3"], verdicts["run"]) == (Verdict.UNKNOWN, Verdict.UNKNOWN)
    assert verdicts["W2"] is Verdict.PASS


def test_run_of_a_running_cluster_cannot_be_sealed(tmp_path: Path) -> None:
    with Cluster(brokers=1, data_dir=tmp_path, properties=PROPERTIES_OF_BROKERS):
        sealed = _program("bridgehead.cli.main", "evidence", "seal", str(tmp_path))
    assert sealed.returncode == 4
    assert "`bridgehead down` seals its run" in sealed.stderr


def test_the_key_of_a_signed_run_is_in_no_file_and_no_command_line(tmp_path: Path) -> None:
    """No file of the cluster and no command line contains the key.

    The command line of the program that seals the run has only the path of the key's file.
    """
    key = tmp_path / "key"
    key.write_text("0123456789abcdef0123456789abcdef\n", encoding="utf-8")
    key.chmod(0o600)
    folder = tmp_path / "cluster"
    cluster = Cluster(
        brokers=1, data_dir=folder, properties=PROPERTIES_OF_BROKERS, seal_key=str(key)
    )
    with cluster:
        _create(cluster, 1, "orders")
        stop = threading.Thread(target=cluster.stop)
        stop.start()
        seen = set()
        while stop.is_alive():
            seen |= {
                " ".join(process.info["cmdline"] or ()) for process in process_iter(["cmdline"])
            }
        stop.join()
    assert any("judge.evidence" in line and f"--seal-key={key}" in line for line in seen)
    secret = read_key(key)
    assert not [line for line in seen if secret.decode() in line]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [path for path in files if path.name == SIGNATURE]
    assert not [path for path in files if secret in path.read_bytes()]
    evidence = read_run(folder, SealRules(key=secret))
    assert (evidence.seal, _verdicts(evidence)["run"]) == (Seal.SIGNED, Verdict.PASS)
    with pytest.raises(EvidenceError, match="with another key"):
        read_run(folder, SealRules(key=b"another key of 30 bytes or so"))


def test_cluster_does_not_start_with_an_unusable_key(tmp_path: Path) -> None:
    folder, key = tmp_path / "cluster", tmp_path / "key"
    key.touch()
    key.chmod(0o600)
    options = ("--data-dir", str(folder), "--seal-key", str(key))
    started = _program("bridgehead.cli.main", "up", "--ports", "auto", *options)
    assert started.returncode == ExitCode.CANNOT_RUN
    message = started.stderr.splitlines()[-1]
    assert message.startswith(f"bridgehead: The seal key {key} has 0 bytes, fewer than 16")
    assert not list(folder.rglob("*.jsonl"))
    with pytest.raises(ClusterError, match="has 0 bytes"):
        Cluster(brokers=1, data_dir=folder, seal_key=key).start()
    with pytest.raises(ClusterError, match="needs a data_dir"):
        Cluster(brokers=1, seal_key=key).start()


def test_missing_fence_fails_w2(start_cluster: StartCluster, tmp_path: Path) -> None:
    """Property W2 (every_write_is_fenced) detects the seeded bug even without a failover."""
    cluster = start_cluster(
        brokers=1,
        data_dir=tmp_path,
        properties=PROPERTIES_OF_BROKERS,
        node_command=(*MUTANT_NODE, "fence_off"),
    )
    _create(cluster, 1, "orders")
    cluster.stop()
    judged = _program("judge", str(tmp_path), "--json")
    assert judged.returncode == 1
    document: dict[str, Any] = json.loads(judged.stdout)
    failed = [row["property"] for row in document["properties"] if row["verdict"] == "FAIL"]
    assert failed == ["W2"]
