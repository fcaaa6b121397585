"""The cluster under attack, started with the command line; its state is read from outside.

Listeners: OPEN (PLAINTEXT), SECURE (SASL_SSL), MUTUAL (SSL), DRAFT (PLAINTEXT, drafted protocol),
INTERNAL (SASL_PLAINTEXT, the inter-broker listener) and TOKENS (SASL_PLAINTEXT, signed tokens).
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import trustme
import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from kazoo.client import KazooClient

ROOT: Final = Path(__file__).parents[2]
BROKERS: Final = (1, 2)
CONTROLLER, FOLLOWER = BROKERS
PASSWORDS: Final = {
    "admin": "admin-secret",
    "alice": "alice-secret",
    "forwarder": "forwarder-secret",
}
PACKAGE: Final = "org.apache.kafka.common.security"
TOKEN_HANDLER: Final = f"{PACKAGE}.oauthbearer.secured.OAuthBearerValidatorCallbackHandler"
# Only a privileged user can write below these paths, with two exceptions: alice can write topics
# that begin with `alice-`, and create delegation tokens of her own.
PROTECTED: Final = (
    *("/brokers/topics", "/config", "/kafka-acl", "/kafka-acl-extended", "/delegation_token"),
    *("/admin", "/feature"),
)
ALICES: Final = "alice-"
_TRACEBACK_CHARS: Final = 2_000


def bridgehead(
    *arguments: str, check: bool = True, classes: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command line from the source tree; `classes` is a folder of an operator's code."""
    code = "from bridgehead.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, filter(None, (ROOT, classes))))},
        capture_output=True,
        text=True,
        timeout=900,
    )
    if check and ended.returncode:
        raise RuntimeError(
            f"bridgehead {arguments[0]} ended with {ended.returncode}: {ended.stderr}"
        )
    return ended


def znodes(connect: str, paths: tuple[str, ...]) -> dict[str, bytes]:
    """Return every znode below `paths`, without alice's own topics."""

    def walk(paths: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
        for path in paths:
            if client.exists(path) is None or path.rpartition("/")[2].startswith(ALICES):
                continue
            yield path, client.get(path)[0]
            yield from walk(tuple(f"{path}/{child}" for child in client.get_children(path)))

    client = KazooClient(connect)
    client.start(timeout=30)
    try:
        return dict(walk(paths))
    finally:
        client.stop()
        client.close()


class Certificates:
    """The attacker's and the operator's certificates, in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()  # several attempts may issue the same certificate
        self._authority, self._stranger = trustme.CA(), trustme.CA()
        self.authority = folder / "ca.pem"
        self._authority.cert_pem.write_to_path(self.authority)

    def issue(self, user: str, *hosts: str, foreign: bool = False) -> tuple[Path, Path]:
        """Return certificate chain and key; if `foreign`, an unknown authority signs."""
        with self._lock:
            return self._issued(user, hosts, foreign)

    def _issued(self, user: str, hosts: tuple[str, ...], foreign: bool) -> tuple[Path, Path]:
        ca = self._stranger if foreign else self._authority
        name = "-".join((user, *hosts[:1], "foreign" if foreign else "own")).replace("@", "-")
        certificate, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        if key.exists():
            return certificate, key
        leaf = ca.issue_cert(*hosts, common_name=user)
        leaf.cert_chain_pems[0].write_to_path(certificate)
        leaf.private_key_pem.write_to_path(key)
        return certificate, key

    def client_tls(self, user: str = "", *, foreign: bool = False) -> ssl.SSLContext:
        """The TLS context of a client, with a certificate if `user` is given."""
        context = ssl.create_default_context(cafile=str(self.authority))
        if user:
            certificate, key = self.issue(user, f"{user}@example.org", foreign=foreign)
            context.load_cert_chain(certificate, key)
        return context


class Target:
    """The running cluster: its addresses for the attacks, and its state for the checks."""

    def __init__(self, folder: Path, document: dict[str, Any], files: Certificates, key: Any):
        self.folder = folder
        self.document = document
        self.files = files
        self.token_key = key
        self.pids = {broker["id"]: broker["pid"] for broker in document["brokers"]}
        self.memory_at_start = {broker: self.memory(broker) for broker in BROKERS}
        self.tls = files.client_tls()
        self.mutual = files.client_tls("mallory")

    def address(self, listener: str, broker: int = FOLLOWER) -> str:
        (entry,) = (node for node in self.document["brokers"] if node["id"] == broker)
        return str(entry["listeners"][listener])

    def metrics_address(self, broker: int = FOLLOWER) -> str:
        (entry,) = (node for node in self.document["brokers"] if node["id"] == broker)
        return str(entry["metrics_url"]).split("/")[2]

    def ready(self, broker: int) -> dict[str, str]:
        """Return what a node publishes, such as its gRPC address and its incarnation."""
        path = self.folder / "nodes" / str(broker) / "ready.json"
        document: dict[str, str] = json.loads(path.read_text())
        return document

    def memory(self, broker: int) -> int:
        """Return the resident bytes of a broker."""
        pages = int(Path(f"/proc/{self.pids[broker]}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def is_alive(self, broker: int) -> bool:
        state = json.loads(bridgehead("status", "--json", *self._here()).stdout)
        (now,) = (node for node in state["brokers"] if node["id"] == broker)
        return bool(now["pid"] == self.pids[broker]) and Path(f"/proc/{now['pid']}").exists()

    def protected(self) -> dict[str, bytes]:
        """Return the znodes that only a privileged user can write, without alice's own topics."""
        return znodes(self.document["zookeeper_connect"], PROTECTED)

    def tracebacks(self) -> list[str]:
        """Return the node logs with a traceback, each with its first traceback."""
        tracebacks = []
        for log in sorted(self.folder.glob("nodes/*/node.*")):
            if log.suffix in (".log", ".out"):
                _, word, rest = log.read_text(errors="replace").partition("Traceback")
                if word:
                    tracebacks.append(f"{log.relative_to(self.folder)}: {rest[:_TRACEBACK_CHARS]}")
        return tracebacks

    def secrets_in_logs(self) -> list[str]:
        """Return the logs and event logs that contain a password or a key."""
        words = [word.encode() for word in PASSWORDS.values()] + [b"token-master-key", b"PRIVATE"]
        files = [
            *(path for path in self.folder.glob("nodes/*/**/*") if path.suffix in (".log", ".out")),
            *self.folder.glob("evidence/run=*/node=*/*.jsonl"),
        ]
        return [
            str(path.relative_to(self.folder))
            for path in sorted(files)
            if any(word in path.read_bytes() for word in words)
        ]

    def torn_events(self) -> list[str]:
        """Return the lines of the event logs that are not JSON or are out of sequence."""
        wrong = []
        for folder in sorted(self.folder.glob("evidence/run=*/node=*")):
            expected: dict[object, int] = {}
            for file in sorted(folder.glob("*.jsonl")):
                for line_number, line in enumerate(file.read_bytes().splitlines(), 1):
                    try:
                        event = json.loads(line)
                        boot, sequence = event["boot"], event["seq"]
                    except (ValueError, KeyError):
                        wrong.append(f"{file.name}:{line_number}")
                        continue
                    if sequence != expected.get(boot, sequence):
                        wrong.append(f"{file.name}:{line_number}")
                    expected[boot] = sequence + 1
        return wrong

    def stop_and_judge(self) -> tuple[int, str]:
        """Stop the cluster; return the judge's exit code and its output."""
        bridgehead("down", *self._here())
        judged = bridgehead("judge", str(self.folder), check=False)
        return judged.returncode, judged.stdout + judged.stderr

    def _here(self) -> tuple[str, str]:
        return "--data-dir", str(self.folder)


def _properties(files: Certificates, key_file: Path) -> dict[str, str]:
    chain, key = files.issue("listener", "127.0.0.1", "localhost")
    return {
        "bridgehead.grpc.authority": str(files.authority),
        "listener.name.draft.bridgehead.dialect": "drafted",
        "inter.broker.listener.name": "INTERNAL",
        "bridgehead.data.plane": "false",  # otherwise brokers would need a login for INTERNAL
        "connection.failed.authentication.delay.ms": "1",
        "delegation.token.secret.key": "token-master-key",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": chain.read_text(),
        "ssl.keystore.key": key.read_text(),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": files.authority.read_text(),
        "ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/, DEFAULT",
        "listener.name.tokens.oauthbearer.sasl.server.callback.handler.class": TOKEN_HANDLER,
        "listener.name.tokens.sasl.oauthbearer.jwks.endpoint.url": key_file.as_uri(),
        "listener.name.tokens.sasl.oauthbearer.expected.audience": "kafka",
        "listener.name.tokens.sasl.oauthbearer.expected.issuer": "operator",
    }


def _cluster_file(
    folder: Path, files: Certificates, key_file: Path, weakened_by: Mapping[str, str]
) -> Path:
    properties = {**_properties(files, key_file), **weakened_by}
    nodes = {}
    for broker in BROKERS:
        certificate, own_key = files.issue("broker", f"broker-{broker}.bridgehead")
        nodes[broker] = {
            "bridgehead.grpc.certificate": str(certificate),
            "bridgehead.grpc.key": str(own_key),
        }
    users = {name: {"password": word, "super": name == "admin"} for name, word in PASSWORDS.items()}
    document = {
        "brokers": len(BROKERS),
        "controller": CONTROLLER,
        "listeners": {
            "OPEN": {"protocol": "PLAINTEXT"},
            "SECURE": {"protocol": "SASL_SSL"},
            "MUTUAL": {"protocol": "SSL", "client_auth": "required"},
            "DRAFT": {"protocol": "PLAINTEXT"},
            "INTERNAL": {"protocol": "SASL_PLAINTEXT"},
            "TOKENS": {"protocol": "SASL_PLAINTEXT", "mechanisms": ["OAUTHBEARER"]},
        },
        "users": users,
        "acls": [
            {
                "principal": "User:alice",
                "operations": ["create", "describe", "delete"],
                "resource": f"topic:{ALICES}",
                "pattern": "prefixed",
            },
            {
                "principal": "User:forwarder",
                "operations": ["cluster_action"],
                "resource": "cluster",
            },
        ],
        "properties": properties,
        "nodes": nodes,
    }
    path = folder / "cluster.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


@contextmanager
def started(
    folder: Path, weakened_by: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Target]:
    """Start the cluster with its data in `folder`/data; stop it at the end.

    `weakened_by` has properties that weaken the cluster's security.
    """
    files, key = Certificates(folder), rsa.generate_private_key(65537, 2048)
    public = json.loads(RSAAlgorithm.to_jwk(key.public_key()))
    key_file = folder / "keys.json"
    key_file.write_text(json.dumps({"keys": [{**public, "kid": "operator"}]}))
    data = folder / "data"
    config = _cluster_file(folder, files, key_file, weakened_by)
    up = bridgehead(
        *("up", "--json", "--ports", "auto", "--detach"),
        *("--config", str(config), "--data-dir", str(data)),
        check=False,
    )
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        document = json.loads(up.stdout)
        yield Target(data, document.get("ready", document), files, key)
    finally:
        bridgehead("down", "--data-dir", str(data), check=False)
