"""docker-compose.yml as it stands: real clients, faults of containers under load, one judgement."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bridgehead.application import module_command, module_environment
from bridgehead.cluster import ClientHistory
from chaos.demo.clients import Load
from tests.docker.compose import (
    ComposeCluster,
    begin_evidence,
    collect_evidence,
    compose_cluster,
    left_behind,
    wait_until,
)
from tests.integration.admin_clients import AiokafkaHand, ConfluentHand, KafkaPythonHand

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]

SESSION_TIMEOUT_S = 2.0
FAST = {"BRIDGEHEAD_SESSION_TIMEOUT_MS": str(int(SESSION_TIMEOUT_S * 1000))}
INSIDE = """
import json, sys, time
sys.path.insert(0, "/client")
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
admin = KafkaAdminClient(bootstrap_servers="kafka-1:9092,kafka-2:9092,kafka-3:9092")
admin.create_topics([NewTopic("inside", 3, 3)])
expected = set(sys.argv[1:])
until = time.monotonic() + 20  # a broker learns of a topic a little later than its creator
while not expected <= set(admin.list_topics()) and time.monotonic() < until:
    time.sleep(0.05)
print(json.dumps(sorted(admin.list_topics())))
"""


def test_real_clients_are_served_from_the_host_and_from_inside(images: None) -> None:
    """Each listener advertises what its side of the network can reach."""
    with compose_cluster(environment=FAST) as cluster:
        for hand in (ConfluentHand, KafkaPythonHand, AiokafkaHand):
            client = hand(cluster.bootstrap_servers)
            client.create(f"from-{hand.__name__.lower()}", 3, 3, {"retention.ms": "1000"})
            client.close()
        names = {"from-aiokafkahand", "from-confluenthand", "from-kafkapythonhand", "inside"}
        assert names <= set(json.loads(_from_inside(cluster, names)))
    assert left_behind(cluster.project) == ""


def _from_inside(cluster: ComposeCluster, expected: set[str]) -> str:
    """kafka-python, which is nothing but Python, in a container of the project's network."""
    import kafka

    library = Path(kafka.__file__).parent
    return cluster.docker(
        "run",
        "--rm",
        f"--network={cluster.project}_default",
        f"--volume={library}:/client/kafka:ro",
        "bridgehead-node:latest",
        "/opt/bridgehead/bin/python",
        "-c",
        INSIDE,
        *expected,
    ).splitlines()[-1]


def test_an_ensemble_loses_a_member_and_nobody_notices(images: None) -> None:
    """docker-compose.ensemble.yml: two of three members are a majority."""
    with compose_cluster("docker-compose.ensemble.yml", environment=FAST) as cluster:
        client = ConfluentHand(cluster.bootstrap_servers)
        client.create("before", 1, 3, {})
        cluster.compose("kill", "zookeeper-2")
        client.create("after", 1, 3, {})
        assert {"before", "after"} <= client.names()
        client.close()
    assert left_behind(cluster.project) == ""


def test_kill_pause_and_disconnect_under_load_lose_nothing(images: None, tmp_path: Path) -> None:
    """One run, one judgement: of the nodes' events, the clients' history and ZooKeeper's log.

    Once in plain Python here, once by the Spark job in the image of all tools.
    """
    run_id = "compose-faults"
    harness = begin_evidence(tmp_path / "evidence", run_id)
    run = tmp_path / "evidence" / f"run={run_id}"
    told = {
        **FAST,
        "BRIDGEHEAD_RUN_ID": run_id,
        "BRIDGEHEAD_SCENARIO": "kill-pause-disconnect",
        "BRIDGEHEAD_CONTROLLER_ID": "self",
    }
    with compose_cluster(environment=told) as cluster:
        cluster.harness = harness
        servers = cluster.bootstrap_servers.split(",")
        with ClientHistory(run, "load") as history:
            load = Load(servers, history, threads_per_broker=1)
            load.start()
            try:
                _break_everything_once(cluster, load, run)
            finally:
                load.stop()
        assert len(load.acknowledged) > 100
        collect_evidence(cluster, run, ["zookeeper"])
    assert left_behind(cluster.project) == ""
    judged = subprocess.run(
        module_command("chaos.judge", str(run), "--json"),
        env=module_environment(),
        capture_output=True,
        check=False,
        text=True,
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr


def _break_everything_once(cluster: ComposeCluster, load: Load, run: Path) -> None:
    """Kill, pause, disconnect the controller; take ZooKeeper away for a moment."""
    victim, others = _controller_and_others(cluster, load)
    it = cluster.container(f"kafka-{victim}")
    with cluster.fault("kill", str(victim), ("kill", it), ("start", it)):
        cluster.wait_for_controller(*others, other_than=victim)
        cluster.note_end(victim, run)

    frozen, others = _controller_and_others(cluster, load)
    it = cluster.container(f"kafka-{frozen}")
    with cluster.fault("freeze", str(frozen), ("pause", it), ("unpause", it)):
        cluster.wait_for_controller(*others, other_than=frozen)

    alone, others = _controller_and_others(cluster, load)
    it, network = cluster.container(f"kafka-{alone}"), f"{cluster.project}_default"
    cut = ("network", "disconnect", network, it)
    mend = ("network", "connect", f"--alias=kafka-{alone}", network, it)
    with cluster.fault("disconnect", str(alone), cut, mend):
        cluster.wait_for_controller(*others, other_than=alone)

    _controller_and_others(cluster, load)
    it = cluster.container("zookeeper")
    with cluster.fault("freeze_zookeeper", "zookeeper", ("pause", it), ("unpause", it)):
        missed = "kafka_server_sessionexpirelistener_connected 0.0"
        wait_until(lambda: missed in cluster.metrics(1), "broker 1 misses ZooKeeper")
    _controller_and_others(cluster, load)


def _controller_and_others(cluster: ComposeCluster, load: Load) -> tuple[int, list[int]]:
    """Once all brokers know one controller and clients get on."""
    controller = cluster.wait_for_controller()
    assert load.wait_for_more(30, timeout_s=60)
    return controller, [broker for broker in (1, 2, 3) if broker != controller]


def test_a_secured_cluster_lets_in_whom_its_file_names(images: None, tmp_path: Path) -> None:
    """docker-compose.secure.yml: alice may, bob may not, a stranger gets no answer."""
    with compose_cluster("docker-compose.secure.yml", environment=FAST) as cluster:
        authority = tmp_path / "ca.pem"
        cluster.compose("cp", "setup:/secrets/tls/ca.pem", str(authority))
        common = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(authority),
            "log_level": 0,
        }

        def client(user: str, password: str, mechanism: str) -> AdminClient:
            login = {"sasl.username": user, "sasl.password": password}
            return AdminClient({**common, **login, "sasl.mechanism": mechanism})

        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            name = f"orders-{mechanism.lower()}"
            alice = client("alice", "alice-secret", mechanism)
            alice.create_topics([NewTopic(name, 1, 3)])[name].result(20)
        bob = client("bob", "bob-secret", "SCRAM-SHA-256")
        with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
            bob.create_topics([NewTopic("orders-of-bob", 1, 3)])["orders-of-bob"].result(20)
        stranger = client("alice", "a guess", "SCRAM-SHA-256")
        with pytest.raises(KafkaException):
            stranger.list_topics(timeout=3)
        said = cluster.compose("logs")
        assert "alice-secret" not in said
        assert "admin-secret" not in said
    assert left_behind(cluster.project) == ""
