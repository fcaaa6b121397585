"""docker-compose.yml and its overrides, with clients on the host and in containers."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import urllib.request
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.docker.compose import ROOT, ComposeCluster, compose_cluster, left_behind, wait_until
from tests.integration.admin_clients import AiokafkaAdmin, ConfluentAdmin, KafkaPythonAdmin

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]

FAST = {"BRIDGEHEAD_SESSION_TIMEOUT_MS": "2000"}
# The containers store their files below these folders. The folders themselves were created by
# Docker, so their permissions are not checked.
VOLUMES = {
    **{f"kafka-{n}": ("/var/lib/bridgehead", "/evidence", "/secrets") for n in (1, 2, 3)},
    "zookeeper": ("/data", "/datalog"),
}
OPEN_TO_OTHERS = ("!", "-type", "l", "-perm", "/077", "-printf", "%M %p\\n")
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


def test_clients_on_the_host_and_in_containers_are_served(images: None) -> None:
    """Each listener advertises a reachable address."""
    with compose_cluster(environment=FAST) as cluster:
        for admin in (ConfluentAdmin, KafkaPythonAdmin, AiokafkaAdmin):
            client = admin(cluster.bootstrap_servers)
            client.create(f"from-{admin.__name__.lower()}", 3, 3, {"retention.ms": "1000"})
            client.close()
        names = {"from-aiokafkaadmin", "from-confluentadmin", "from-kafkapythonadmin", "inside"}
        assert names <= set(json.loads(_from_inside(cluster, names)))
        told = _told_by_the_page(cluster)
        assert "ZooKeeper elects broker" in told
        assert "User:ANONYMOUS" in told
        # Without ZooKeeper there is no controller, so the brokers' containers must be unhealthy.
        cluster.compose("kill", "zookeeper")
        wait_until(
            lambda: {cluster.state_of_health(broker) for broker in (1, 2, 3)} == {"unhealthy"},
            "unhealthy brokers without a controller",
        )
    assert left_behind(cluster.project) == ""


def _told_by_the_page(cluster: ComposeCluster) -> str:
    """Start the profile `ui`; return the captions of the page once it shows a request."""
    cluster.compose("--profile", "ui", "up", "--detach", "page")
    logs = partial(cluster.compose, "logs", "--no-log-prefix", "page")
    said = wait_until(
        lambda: re.search(r"Open (http://127\.0\.0\.1:\d+/\S+)", logs()), "an address"
    )

    def captions() -> str | None:
        with urllib.request.urlopen(f"{said[1]}details.json?count=500", timeout=30) as response:
            text = " ".join(row["caption"] for row in json.load(response))
        return text if "gets request" in text else None

    told: str = wait_until(captions, "a request on the page")
    return told


def _from_inside(cluster: ComposeCluster, expected: set[str]) -> str:
    """Run the host's kafka-python (pure Python) in a container on the project's network."""
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


@pytest.mark.parametrize(
    "override", [None, "docker-compose.ensemble.yml", "docker-compose.secure.yml"]
)
def test_every_compose_file_and_profile_is_valid(engine: None, override: str | None) -> None:
    files = ["-f", "docker-compose.yml", *(["-f", override] if override else [])]
    names = ("monitoring", "pipeline", "ui")
    profiles = [argument for name in names for argument in ("--profile", name)]
    done = subprocess.run(
        ["docker", "compose", *files, *profiles, "config", "--services"],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert {"prometheus", "grafana", "spark-master", "submitter", "page"} <= set(
        done.stdout.split()
    )


def test_ensemble_tolerates_the_loss_of_a_member(images: None) -> None:
    """docker-compose.ensemble.yml has three ZooKeeper members."""
    with compose_cluster("docker-compose.ensemble.yml", environment=FAST) as cluster:
        client = ConfluentAdmin(cluster.bootstrap_servers)
        client.create("before", 1, 3, {})
        cluster.compose("kill", "zookeeper-2")
        client.create("after", 1, 3, {})
        assert {"before", "after"} <= client.names()
        client.close()
    assert left_behind(cluster.project) == ""


def test_secured_cluster_enforces_its_logins_and_acls(images: None, tmp_path: Path) -> None:
    """docker-compose.secure.yml: alice is allowed, bob is denied, a wrong password is rejected."""
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
        logs = cluster.compose("logs")
        assert "alice-secret" not in logs
        assert "admin-secret" not in logs
        for service, folders in VOLUMES.items():
            within = ("exec", "-T", service)
            open_files = cluster.compose(
                *within, "find", *folders, "-mindepth", "1", *OPEN_TO_OTHERS
            )
            assert open_files == ""
            command = ("grep", "-rlE", "(alice|admin|bob)-secret", *folders)
            held = cluster.compose(*within, "sh", "-c", f"{shlex.join(command)} || true")
            assert {file for file in held.split() if not file.endswith("/node.properties")} == set()
    assert left_behind(cluster.project) == ""
