"""The cluster reports the embedded ZooKeeper's exit, and recovers when ZooKeeper restarts."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bridgehead.application import module_command, module_environment
from bridgehead.cluster import Cluster, ClusterError
from bridgehead.cluster.client import ControlClient
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.raw_client.blocking import call_once
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Verdict, judge, worst
from tests.integration.conftest import StartCluster
from tests.integration.processes import wait_until

SESSION_TIMEOUT_S = 4.0
PROPERTIES = {"zookeeper.session.timeout.ms": str(int(SESSION_TIMEOUT_S * 1000))}


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """A thread for a request that waits."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


def create(cluster: Cluster, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, 1)], request_timeout=60)[name].result()


def describe_configs(address: str, topic: str) -> int:
    """Describe a topic's configs through a broker; return the error code."""
    resource = {"resourceType": 2, "resourceName": topic, "configurationKeys": None}
    body = {"resources": [resource], "includeSynonyms": False}
    (result,) = call_once(address, ApiKey.DESCRIBE_CONFIGS, 1, body)["results"]
    return int(result["errorCode"])


def health(cluster: Cluster, broker: int) -> tuple[int, str]:
    url = cluster.brokers[broker].metrics_url.replace("/metrics", "/health")
    try:
        with urllib.request.urlopen(url, timeout=5) as page:
            return page.status, page.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def is_ready(cluster: Cluster) -> bool:
    status = cluster.status()
    return status["phase"] == "ready" and status["controller_id"] is not None


def command(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `bridgehead ...` for this cluster."""
    return subprocess.run(
        module_command("bridgehead.cli.main", *arguments, "--data-dir", str(cluster.data_dir)),
        env=module_environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def verdict(folder: Path) -> Verdict:
    return worst(judgement.row for judgement in judge(History(read_run(folder))))


@pytest.mark.long
def test_a_killed_zookeeper_is_reported_and_started_again(
    start_cluster: StartCluster, tmp_path: Path, pool: ThreadPoolExecutor
) -> None:
    """Status and /health report the exit; nodes that still run recover without a restart."""
    cluster = start_cluster(brokers=2, data_dir=tmp_path, properties=PROPERTIES)
    create(cluster, "before")
    before = cluster.status()
    with pytest.raises(ClusterError, match=f"running already, as pid {before['zookeeper_pid']}"):
        ControlClient(tmp_path).start_zookeeper()
    os.kill(before["zookeeper_pid"], signal.SIGKILL)
    wait_until(lambda: cluster.status()["phase"] == "degraded", timeout_s=2.0)
    assert not psutil.pid_exists(before["zookeeper_pid"])
    wait_until(
        lambda: health(cluster, 1)[0] == 503 == health(cluster, 2)[0],
        timeout_s=SESSION_TIMEOUT_S + 2,
    )
    status = cluster.status()
    assert status["zookeeper_pid"] is None
    assert "killed by signal 9" in status["zookeeper_problem"]
    assert status["controller_id"] is None
    assert {broker["state"]["controller_state"] for broker in status["brokers"]} == {
        "standby",
        "suspended",
    }
    assert not any(broker["state"]["is_controller"] for broker in status["brokers"])
    assert "`bridgehead zookeeper start`" in command(cluster, "status").stdout
    assert "ZooKeeper exited: killed" in (tmp_path / "supervisor.log").read_text()

    cluster.kill_node(2)
    rejected = command(cluster, "node", "start", "2")
    assert rejected.returncode == 4
    assert re.fullmatch(
        r"bridgehead: Broker 2 did not start: no ZooKeeper answered within \S+ s: "
        r"is ZooKeeper running at the address in zookeeper\.connect\?\n",
        rejected.stderr,
    )
    assert "Traceback" not in (tmp_path / "nodes" / "2" / "node.out").read_text()

    described = pool.submit(describe_configs, cluster.brokers[1].listeners["PLAINTEXT"], "before")
    started = command(cluster, "zookeeper", "start")
    assert started.returncode == 0, started.stderr
    wait_until(lambda: is_ready(cluster))
    assert described.result() == 0, "a read did not wait for ZooKeeper"
    cluster.start_node(2)
    create(cluster, "after")
    after = cluster.status()
    assert after["zookeeper_connect"] == before["zookeeper_connect"]
    assert after["brokers"][0]["pid"] == before["brokers"][0]["pid"]
    topics = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics().topics
    assert {"before", "after"} <= set(topics)
    cluster.stop()
    assert verdict(tmp_path) is Verdict.PASS


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a disk of 16 MiB at `folder`; yield the path of a file that can fill it."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode != 0:
        pytest.skip("NOT TESTED: a full disk needs the right to mount a tmpfs")
    try:
        yield folder / "filling"
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(1 << 12)):
            pass


@pytest.mark.long
def test_zookeepers_full_disk_is_reported_and_survived(tmp_path: Path) -> None:
    """While the disk is full, `status` and `zookeeper start` report it in one sentence.

    Once the disk has free space, `zookeeper start` succeeds and the cluster works again.
    """
    with (
        small_disk(tmp_path / "zookeeper") as filling,
        Cluster(brokers=2, data_dir=tmp_path, properties=PROPERTIES) as cluster,
    ):
        create(cluster, "before")
        fill(filling)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_topics([NewTopic(f"lost-{n}", 50, 1) for n in range(20)], request_timeout=5)
        wait_until(lambda: cluster.status()["phase"] == "degraded")
        sentence = f"there is no space left for {tmp_path / 'zookeeper'}."
        assert sentence in cluster.status()["zookeeper_problem"]
        early = command(cluster, "zookeeper", "start")
        assert (early.returncode, early.stderr.count("\n")) == (4, 1)
        assert sentence in early.stderr
        filling.unlink()
        assert command(cluster, "zookeeper", "start").returncode == 0
        wait_until(lambda: is_ready(cluster))
        create(cluster, "after")
        assert {"before", "after"} <= set(admin.list_topics().topics)
        cluster.stop()
        assert verdict(tmp_path) is Verdict.PASS


@pytest.mark.long
def test_the_brokers_full_disk_is_survived(tmp_path: Path) -> None:
    """A broker that cannot write its evidence does not answer until the disk has free space.

    No evidence is lost.
    """
    folder = tmp_path / "data"
    with (
        small_disk(folder / "evidence") as filling,
        Cluster(brokers=2, data_dir=folder, properties=PROPERTIES) as cluster,
    ):
        create(cluster, "before")
        fill(filling)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        with pytest.raises(KafkaException):
            admin.create_topics([NewTopic("lost", 1, 1)], request_timeout=5)["lost"].result()
        filling.unlink()
        wait_until(lambda: is_ready(cluster))
        create(cluster, "after")
        cluster.stop()
        assert verdict(folder) is Verdict.PASS
