"""When `bridgehead up --config` is ready, the users of the file can log in."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from bridgehead.cluster.client import ControlClient
from bridgehead.kafka_wire.errors import ErrorCode
from tests.integration.login_clients import LOGINS, Login, RejectedLoginError, confluent_options
from tests.integration.zookeeper_peers import kazoo_client

ROOT = Path(__file__).parents[2]
FILE = """
brokers: 2
ports: auto
listeners:
  LOCAL: PLAINTEXT
  CLIENTS: {protocol: SASL_SSL}
  MUTUAL: {protocol: SSL, client_auth: required}
users:
  admin: {password: planted-admin-secret, super: true}
  alice: {password: planted-alice-secret, mechanisms: [PLAIN, SCRAM-SHA-256]}
acls:
  - {principal: "User:alice", operations: [create], resource: "topic:orders-", pattern: prefixed}
"""
PLANTED = "planted-a"  # the beginning of every password


def bridgehead(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = "from bridgehead.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", command, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a running cluster that was started twice."""
    folder = tmp_path_factory.mktemp("secured") / "data"
    file = folder.parent / "cluster.yaml"
    file.write_text(FILE)
    for _ in range(2):
        bridgehead("down", "--data-dir", str(folder))
        done = bridgehead("up", "--detach", "--config", str(file), "--data-dir", str(folder))
        assert done.returncode == 0, done.stderr
    yield folder
    bridgehead("down", "--data-dir", str(folder))


def login(data_dir: Path, broker: int, listener: str, **credentials: object) -> Login:
    document = ControlClient(data_dir).status()
    (at,) = [node["listeners"] for node in document["brokers"] if node["id"] == broker]
    protocol = {"CLIENTS": "SASL_SSL", "MUTUAL": "SSL"}[listener]
    return Login(at[listener], protocol, ca=data_dir / "tls" / "ca.pem", **credentials)  # type: ignore[arg-type]


@pytest.mark.parametrize("broker", [1, 2])
def test_every_user_can_log_in_when_the_cluster_is_ready(data_dir: Path, broker: int) -> None:
    """Users can log in at every broker, but only with the mechanisms that the file gives them."""
    passwords = {"admin": "planted-admin-secret", "alice": "planted-alice-secret"}
    mechanisms = {
        "admin": {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"},
        "alice": {"PLAIN", "SCRAM-SHA-256"},
    }
    for user, password in passwords.items():
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            credentials = login(
                data_dir, broker, "CLIENTS", mechanism=mechanism, user=user, password=password
            )
            if mechanism in mechanisms[user]:
                assert LOGINS["aiokafka"](credentials) == 2
            else:
                with pytest.raises(RejectedLoginError):
                    LOGINS["aiokafka"](credentials)


@pytest.mark.parametrize("broker", [1, 2])
def test_acls_of_the_file_apply_when_the_cluster_is_ready(data_dir: Path, broker: int) -> None:
    """Alice can create only the topics that her ACL allows, at every broker."""
    password = "planted-alice-secret"
    credentials = login(
        data_dir, broker, "CLIENTS", mechanism="SCRAM-SHA-256", user="alice", password=password
    )
    admin = AdminClient(confluent_options(credentials))
    names = [f"orders-{broker}", f"invoices-{broker}"]
    created = admin.create_topics([NewTopic(name, 1, 1) for name in names], request_timeout=60)
    created[names[0]].result()
    with pytest.raises(KafkaException) as rejected:
        created[names[1]].result()
    assert rejected.value.args[0].code() == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_user_certificate_is_generated(data_dir: Path) -> None:
    """The certificate authenticates its user over mutual TLS."""
    certificate = data_dir / "tls" / "users" / "alice.pem"
    assert LOGINS["aiokafka"](login(data_dir, 1, "MUTUAL", certificate=certificate)) == 2
    events = "".join(
        file.read_text() for file in (data_dir / "evidence").glob("run=*/node=1/*.jsonl")
    )
    assert '"principal":"User:alice"' in events


def test_remote_plaintext_is_rejected(tmp_path: Path) -> None:
    """The error names the option that allows PLAINTEXT on other addresses than loopback."""
    file = tmp_path / "cluster.yaml"
    file.write_text(
        "brokers: 1\nports: auto\nlisteners: {OPEN: {protocol: PLAINTEXT, host: 0.0.0.0}}"
    )
    rejected = bridgehead(
        "up", "--detach", "--config", str(file), "--data-dir", str(tmp_path / "d")
    )
    assert rejected.returncode == 4
    assert "--allow-remote-plaintext" in rejected.stderr
    assert "Traceback" not in rejected.stderr


def test_secrets_are_only_in_node_properties(data_dir: Path) -> None:
    """Logs, events, cluster.json, status, process list, metrics and znodes contain no secret."""
    texts = [bridgehead("status", "--data-dir", str(data_dir), *how) for how in ((), ("--json",))]
    assert all("127.0.0.1" in output.stdout for output in texts)
    pages = [_metrics_page(broker) for broker in ControlClient(data_dir).status()["brokers"]]
    assert all("successful_authentication" in page for page in pages)
    processes = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True).stdout
    assert "node.properties" in processes
    for text in (*(output.stdout + output.stderr for output in texts), *pages, processes):
        assert PLANTED not in text
    holders = {
        str(file.relative_to(data_dir))
        for file in data_dir.rglob("*")
        if file.is_file() and PLANTED.encode() in file.read_bytes()
    }
    assert holders == {"nodes/1/node.properties", "nodes/2/node.properties"}
    for holder in holders:
        assert (data_dir / holder).stat().st_mode & 0o077 == 0
    document = ControlClient(data_dir).status()
    with kazoo_client(document["zookeeper_connect"]) as zookeeper:
        for path in _walk(zookeeper, "/"):
            assert PLANTED.encode() not in (zookeeper.get(path)[0] or b""), path


def _metrics_page(broker: Mapping[str, Any]) -> str:
    with urllib.request.urlopen(broker["metrics_url"], timeout=30) as page:
        return str(page.read().decode())


def _walk(zookeeper: KazooClient, path: str) -> Iterator[str]:
    yield path
    for child in zookeeper.get_children(path):
        yield from _walk(zookeeper, f"{path.rstrip('/')}/{child}")
