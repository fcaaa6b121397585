"""Only the owner can read what a cluster writes; secrets are only where they must be."""

from __future__ import annotations

import base64
import contextlib
import hmac
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridgehead.application import module_command, module_environment
from bridgehead.cluster.client import ControlClient
from bridgehead.cluster.client_history import ClientHistory
from bridgehead.cluster.ports import Ports
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.raw_client.blocking import Connection
from tests.integration.conftest import ZooKeeperForTest
from tests.integration.processes import holders, open_to_others, wait_until
from tests.integration.zookeeper_peers import kazoo_client

pytestmark = pytest.mark.long

WRITER = "controller:planted-controller-secret"
FILE = f"""
brokers: 2
ports: auto
listeners:
  LOCAL: PLAINTEXT
  CLIENTS: SASL_PLAINTEXT
  SECURE: SASL_SSL
users:
  admin: {{password: planted-admin-secret, super: true}}
  alice: {{password: planted-alice-secret, mechanisms: [PLAIN, SCRAM-SHA-256]}}
properties:
  delegation.token.secret.key: planted-master-secret
  zookeeper.set.acl: "true"
  bridgehead.zookeeper.controller.credential: {WRITER}
  bridgehead.zookeeper.broker.credential: broker:planted-reader-secret
"""
PROPERTIES = r"nodes/\d+/node\.properties"
ZOOKEEPER_LOG = r"zookeeper/version-2/.*|evidence/run=\w+/zookeeper/member=1/log\.\w+"
EVERYONE = 0o022


def bridgehead(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `bridgehead ...` as a user whose new files everyone can read."""
    return subprocess.run(
        module_command("bridgehead.cli.main", *arguments),
        env=module_environment(),
        capture_output=True,
        text=True,
        check=False,
        umask=EVERYONE,
    )


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A secured cluster, restarted after everyone was allowed to read its files."""
    folder = tmp_path_factory.mktemp("private") / "data"
    file = folder.parent / "cluster.yaml"
    file.write_text(FILE)
    up = ("up", "--detach", "--config", str(file), "--data-dir", str(folder))
    done = bridgehead(*up)
    assert done.returncode == 0, done.stderr
    bridgehead("down", "--data-dir", str(folder))
    assert open_to_others(folder) == []
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    done = bridgehead(*up)
    assert done.returncode == 0, done.stderr
    yield folder
    bridgehead("down", "--data-dir", str(folder))


def token_hmac(data_dir: Path) -> str:
    """Create a delegation token as admin; return its HMAC in base64."""
    (broker, *_) = ControlClient(data_dir).status()["brokers"]
    with Connection(broker["listeners"]["CLIENTS"]) as connection:
        assert connection.log_in("admin", "planted-admin-secret")
        owner = {"ownerPrincipalType": None, "ownerPrincipalName": None}
        body: dict[str, Any] = {**owner, "renewers": [], "maxLifetimeMs": -1}
        created = connection.call(ApiKey.CREATE_DELEGATION_TOKEN, 3, body)
    assert created["errorCode"] == 0
    return str(created["hmac"])


def scram_keys(data_dir: Path) -> set[str]:
    """Return the stored and server keys of every SCRAM user, in base64."""
    with kazoo_client(ControlClient(data_dir).status()["zookeeper_connect"] + "/cluster") as client:
        client.add_auth("digest", WRITER)
        users = [client.get(f"/config/users/{name}")[0] for name in ("admin", "alice")]
    keys = {
        key
        for user in users
        for text in json.loads(user)["config"].values()
        for key in re.findall(r"(?:stored_key|server_key)=([^,]+)", text)
    }
    assert len(keys) == 6
    return keys


def test_only_the_owner_can_read_a_clusters_files(data_dir: Path) -> None:
    """This includes the files of a restarted node, and files that everyone could read before."""
    (run,) = (path for path in data_dir.glob("evidence/run=*") if not list(path.glob("manifest*")))
    with ClientHistory(run, "load"):
        pass
    assert open_to_others(data_dir) == []
    ControlClient(data_dir).kill_node(2)
    ControlClient(data_dir).start_node(2)
    assert open_to_others(data_dir) == []


def test_secrets_are_only_in_properties_and_zookeepers_log(data_dir: Path) -> None:
    """The secrets are passwords, SCRAM keys, HMACs and private keys."""
    hmac, keys = token_hmac(data_dir), scram_keys(data_dir)
    for secrets, allowed in (
        ([b"planted-"], PROPERTIES),
        ([hmac.encode(), base64.b64decode(hmac)], "none"),
        (
            [secret for key in keys for secret in (key.encode(), base64.b64decode(key))],
            ZOOKEEPER_LOG,
        ),
        ([b"PRIVATE KEY"], rf"{PROPERTIES}|channel/.*|tls/.*"),
    ):
        names = holders(data_dir, *secrets)
        assert {name for name in names if not re.fullmatch(allowed, name)} == set()
        assert names or allowed == "none"


def test_a_data_directory_with_other_files_keeps_their_modes(tmp_path: Path) -> None:
    """Only the cluster's own files and folders lose permissions."""
    (tmp_path / "nodes").mkdir(mode=0o755)
    other = tmp_path / "notes"
    other.touch(mode=0o644)
    tmp_path.chmod(0o755)
    up = ("up", "--detach", "--brokers=1", "--ports=auto", "--data-dir", str(tmp_path))
    try:
        assert bridgehead(*up).returncode == 0
        assert open_to_others(tmp_path) == ["-rw-r--r-- notes", "drwxr-xr-x ."]
    finally:
        bridgehead("down", "--data-dir", str(tmp_path))


def test_sealing_and_importing_write_private_files(data_dir: Path, tmp_path: Path) -> None:
    """The test imports a broker's log with `bridgehead evidence kafka`."""
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "kafka-request.log").write_text("")
    done = bridgehead("evidence", "kafka", str(tmp_path / "run"), "--logs", f"1={logs}")
    assert done.returncode == 0, done.stderr
    assert open_to_others(tmp_path / "run") == []


def test_an_import_of_kafkas_logs_is_signed_with_the_seal_key(tmp_path: Path) -> None:
    logs, key = tmp_path / "logs", tmp_path / "seal.key"
    logs.mkdir()
    (logs / "kafka-request.log").write_text("")
    key.touch(mode=0o600)
    key.write_text("0123456789abcdef")
    run = tmp_path / "runs" / "run=kafka"
    arguments = ("evidence", "kafka", str(run.parent), f"--logs=1={logs}", f"--seal-key={key}")
    done = bridgehead(*arguments)
    assert done.returncode == 0, done.stderr
    manifest, signed = (run / "manifest.json").read_bytes(), (run / "manifest.hmac").read_text()
    assert signed.strip() == hmac.digest(key.read_bytes(), manifest, "sha256").hex()
    key.chmod(0o644)
    again = bridgehead(*(argument.replace("runs", "others") for argument in arguments))
    assert again.returncode != 0
    assert not (tmp_path / "others").exists()


@pytest.mark.parametrize("program", ["node", "zookeeper"])
def test_foreground_programs_write_private_files(
    program: str, zookeeper: ZooKeeperForTest, tmp_path: Path
) -> None:
    """Containers run these programs in the foreground, on the folder of an earlier start."""
    folder = tmp_path / "data"
    earlier = folder / ("logs" if program == "node" else "version-2")
    earlier.mkdir(parents=True, mode=0o755)
    folder.chmod(0o700)
    port = Ports().choose()
    (tmp_path / "server.properties").write_text(
        f"broker.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\nzookeeper.connect={zookeeper.connect}\n"
        "bridgehead.metrics.listener=127.0.0.1:0\nbridgehead.grpc.listener=127.0.0.1:0\n"
    )
    arguments = {
        "node": ("--config", f"{tmp_path}/server.properties", "--data-dir", str(folder)),
        "zookeeper": (),
    }[program]
    environment = {
        **module_environment(),
        "ZOO_DATA_DIR": str(folder),
        "ZOO_DATA_LOG_DIR": str(folder),
        "ZOO_CFG_EXTRA": f"clientPort={port} admin.enableServer=false",
    }
    written = folder / ("ready.json" if program == "node" else "version-2/snapshot.0")
    process = subprocess.Popen(
        module_command("bridgehead.cli.main", program, "run", *arguments),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        umask=EVERYONE,
    )
    try:
        wait_until(lambda: process.poll() is not None or written.exists())
        assert process.poll() is None
        assert open_to_others(folder) == []
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        process.wait()
