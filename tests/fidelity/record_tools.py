"""Records what the command-line tools of a live Kafka 3.9.1 print.

    python -m tests.fidelity.record_tools [NAME ...]     such as topics; default: every session

It starts three brokers on a ZooKeeper, runs the commands of each session in
`tests/recordings/tools`, and writes the outputs into the same files. Exit code 2: Kafka is not
available.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bridgehead.cluster.java import find_java
from bridgehead.cluster.ports import Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from tests.fidelity.real_kafka import jars, kafka_brokers, reason_to_skip
from tests.fidelity.tool_recordings import (
    FOLDER,
    HMAC,
    Output,
    Step,
    load_session,
    mask,
    save_session,
    without_java,
)

MAIN_CLASSES: Final = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "acls": "kafka.admin.AclCommand",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
}
# Requests for tokens need a login. Clients without a login are super users.
PROPERTIES: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin;User:broker",
    "delegation.token.secret.key": "token-master-key",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'user_admin="admin-secret" user_alice="alice-secret";'
    ),
}
LOGIN: Final = """\
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
username="admin" password="admin-secret";
"""
_BROKERS: Final = (1, 2, 3)
_QUICK_START: Final = (
    "-Xmx128m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Duser.timezone=UTC",
)
KAFKA_UNAVAILABLE: Final = 2


def arguments_of(step: Step, servers: str, sasl_servers: str, hmac: str, folder: Path) -> list[str]:
    """Return a command's words, with the server and the login that it needs."""
    tool, *arguments = [word.replace("HMAC", hmac) for word in shlex.split(step.command)]
    for name, text in step.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    arguments = [
        str(folder / argument) if (folder / argument).is_file() else argument
        for argument in arguments
    ]
    if tool == "delegation-tokens":
        login = folder / "login.properties"
        login.write_text(LOGIN, encoding="utf-8")
        return [
            tool,
            "--bootstrap-server",
            sasl_servers,
            "--command-config",
            str(login),
            *arguments,
        ]
    if tool == "cluster":  # --bootstrap-server comes after the subcommand
        return [tool, *arguments, *(["--bootstrap-server", servers] if arguments else [])]
    return [tool, "--bootstrap-server", servers, *arguments]


def record(path: Path, servers: str, sasl_servers: str) -> None:
    """Run a session and write its outputs."""
    steps = load_session(path)
    hmac = "HMAC"
    with tempfile.TemporaryDirectory(prefix="tools-") as temporary:
        for step in steps:
            words = arguments_of(step, servers, sasl_servers, hmac, Path(temporary))
            done = _run(words)
            match = HMAC.search(done.stdout)
            if hmac == "HMAC" and match is not None:
                hmac = match[0]
            names = {servers: "SERVERS", sasl_servers: "SERVERS", f"{temporary}/": ""}
            step.output = Output(
                without_java(mask(done.stdout, names)),
                without_java(mask(done.stderr, names)),
                done.returncode,
            )
            sys.stdout.write(f"$ {step.command}\n")
            sys.stdout.writelines(f"{line}\n" for line in step.output.lines())
            sys.stdout.flush()
    save_session(path, steps)


def _run(words: list[str]) -> subprocess.CompletedProcess[str]:
    tool, *arguments = words
    command = ["java", *_QUICK_START, "-cp", f"{jars()}/*", MAIN_CLASSES[tool], *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, input="", timeout=120, check=False
    )


@contextmanager
def recorded_kafka() -> Iterator[tuple[str, str]]:
    """Run the Kafka of the recordings; yield the addresses of its PLAINTEXT and SASL listeners."""
    ports = Ports()
    sasl_ports = {broker: ports.choose() for broker in _BROKERS}
    with tempfile.TemporaryDirectory(prefix="record-tools-") as temporary:
        folder = Path(temporary)
        zookeeper = EmbeddedZooKeeper(folder / "zookeeper", [ports.choose()], java=find_java())
        with (
            zookeeper,
            kafka_brokers(
                folder / "kafka",
                zookeeper.connect,
                _BROKERS,
                one_by_one=True,
                properties=PROPERTIES,
                more_listeners={
                    mechanism: {"SASL_PLAINTEXT": port} for mechanism, port in sasl_ports.items()
                },
            ) as servers,
        ):
            yield servers, ",".join(f"127.0.0.1:{port}" for port in sasl_ports.values())


def main() -> int:
    """Run the command; return its exit code."""
    reason = reason_to_skip()
    if reason is not None:
        sys.stderr.write(f"Kafka is not available: {reason}. `make kafka-jars` downloads Kafka.\n")
        return KAFKA_UNAVAILABLE
    with recorded_kafka() as (servers, sasl_servers):
        for name in sys.argv[1:] or MAIN_CLASSES:
            record(FOLDER / f"{name}.txt", servers, sasl_servers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
