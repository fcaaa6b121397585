"""`bridgehead demo authorization [--data-dir DIR]`: allowed, denied and forged requests.

The demo makes four attempts on one cluster. For each it shows the error code at the client, the
controller's log line and the metric that counts the attempt. Exit 0 only if each has the expected
outcome.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bridgehead.cluster import Cluster
from bridgehead.cluster.broker_certificates import files_of, make_certificates
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    encode_request_header,
)
from bridgehead.kafka_wire.json_form import encode_body
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import create_topic_body
from cluster_model.principal import KafkaPrincipal
from demo.console import DemoFailedError, expect, metrics_of, run_demo, running, title
from envelope.channel import ControllerChannel
from envelope.channel_security import ChannelFiles, broker_host, load_security
from envelope.messages import ChannelClosedError, Envelope, Hello, RequestIdentity
from envelope.principal_serde import DefaultPrincipalSerde

CONTROLLER, HONEST, IMPOSTOR, MALLORY = 1, 2, 3, 9
CREATE_TOPICS, CREATE_ACLS = 19, 30
LISTENER: Final = "SASL_PLAINTEXT"
USERS: Final = ("admin", "alice", "bob")
REDIRECTED: Final = "num_messages_redirected_count"
REJECTED: Final = "request_forwarding_to_controller_authorization_fail_count"
_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request. `metric` is the broker that counts it, and the metric's name."""

    title: str
    send: Callable[[DemoCluster], str]  # returns the error code
    code: str
    logged: str  # a part of the line in the controller's kafka-authorizer.log
    metric: tuple[int, str]


class DemoCluster:
    """The cluster. Brokers 1 and 2 have certificates of `broker`, broker 3 of `impostor`."""

    def __init__(self, cluster: Cluster, certificates: Path) -> None:
        self.cluster = cluster
        self._certificates = certificates

    def call(self, broker: int, user: str, key: int, version: int, body: Any) -> Any:
        """Log in with SASL PLAIN and send a request; return the body of the response."""
        with Connection(self.cluster.bootstrap_server(broker, LISTENER)) as connection:
            if not connection.log_in(user, f"{user}-secret"):
                raise DemoFailedError(f"{user} cannot log in to broker {broker}")
            return connection.call(key, version, body)

    def create(self, broker: int, user: str, topic: str) -> str:
        """Create a topic; return the error code."""
        response = self.call(broker, user, CREATE_TOPICS, 4, create_topic_body(topic))
        return ErrorCode(response["topics"][0]["errorCode"]).name

    def forge(self, topic: str) -> str:
        """Send a forged Envelope in the name of User:admin; return the error code."""
        return asyncio.run(self._forge(topic))

    async def _forge(self, topic: str) -> str:
        files = files_of(self._certificates, MALLORY)
        security = load_security(
            ChannelFiles(str(files.certificate), str(files.key), str(files.authority))
        )
        ready = self.cluster.data_dir / "nodes" / str(CONTROLLER) / "ready.json"
        hello = Hello(MALLORY, "forged")
        channel = ControllerChannel(
            json.loads(ready.read_text(encoding="utf-8"))["grpc"],
            hello,
            on_update=lambda _update: None,
            on_closed=lambda: None,
            lowest_unfinished=lambda: 1,
            applied_zxid=lambda: 0,
            credentials=security.client,
            server_name=broker_host(CONTROLLER),
        )
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                response = await channel.send(_forged(hello, topic))
            return ErrorCode(response.error_code).name
        except ChannelClosedError:
            return "the channel was closed"
        finally:
            await channel.close()

    def logged(self, part: str) -> str:
        """Wait for a line with `part` in the controller's log; return the last one."""
        log = self.cluster.data_dir / "nodes" / str(CONTROLLER) / "logs" / "kafka-authorizer.log"
        deadline = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < deadline:
            for line in reversed(log.read_text(encoding="utf-8").splitlines()):
                if part in line:
                    return line
            time.sleep(0.05)
        raise DemoFailedError(f"the controller's kafka-authorizer.log has no line with: {part}")


ATTEMPTS: Final = (
    Attempt(
        f"alice is allowed: she creates a topic through broker {HONEST}, which forwards it",
        lambda demo: demo.create(HONEST, "alice", "orders"),
        "NONE",
        "Principal = User:alice is Allowed Operation = Create from host = 127.0.0.1",
        (HONEST, REDIRECTED),
    ),
    Attempt(
        "bob is denied: the same request through the same broker",
        lambda demo: demo.create(HONEST, "bob", "invoices"),
        "TOPIC_AUTHORIZATION_FAILED",
        "Principal = User:bob is Denied Operation = Create from host = 127.0.0.1 on resource = "
        "Topic:LITERAL:invoices",
        (HONEST, REDIRECTED),
    ),
    Attempt(
        "mallory forges an Envelope in the name of User:admin, over TLS with a valid certificate",
        lambda demo: demo.forge("stolen"),
        "CLUSTER_AUTHORIZATION_FAILED",
        "Principal = User:mallory is Denied Operation = ClusterAction",
        (CONTROLLER, REJECTED),
    ),
    Attempt(
        f"broker {IMPOSTOR} has a certificate of User:impostor: its Envelopes are rejected",
        lambda demo: demo.create(IMPOSTOR, "alice", "orders-too"),
        "UNKNOWN_SERVER_ERROR",
        "Principal = User:impostor is Denied Operation = ClusterAction",
        (CONTROLLER, REJECTED),
    ),
)


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return the exit code."""
    parser = argparse.ArgumentParser(prog="demo authorization", description=__doc__)
    parser.add_argument("--data-dir", type=Path, default=Path(".demo-authorization"))
    options = parser.parse_args(arguments)
    return run_demo(lambda console: _show(console, options.data_dir))


def _make_room(data_dir: Path) -> None:
    """Remove the folder of an earlier run. Any other folder must be empty."""
    left = {path.name for path in data_dir.iterdir()} if data_dir.is_dir() else set()
    if left and not {"certificates", "nodes"} & left:
        raise DemoFailedError(f"{data_dir} is not empty: name another folder with --data-dir.")
    shutil.rmtree(data_dir, ignore_errors=True)


def _show(console: Console, data_dir: Path) -> int:
    _make_room(data_dir)
    data_dir.mkdir(mode=0o700, parents=True)
    certificates = (data_dir / "certificates").resolve()
    users = {CONTROLLER: "broker", HONEST: "broker", IMPOSTOR: "impostor", MALLORY: "mallory"}
    make_certificates(certificates, users)
    cluster = Cluster(
        brokers=3,
        controller=CONTROLLER,
        data_dir=data_dir,
        ports="auto",
        properties=_properties(),
        node_properties={broker: _channel(certificates, broker) for broker in (1, 2, 3)},
    )
    with running(console, cluster):
        demo = DemoCluster(cluster, certificates)
        console.print(
            f"Three brokers; broker {CONTROLLER} is the controller. Super users: admin, broker.\n"
            "One ACL: User:alice may CREATE topics whose names begin with `orders`."
        )
        response = demo.call(CONTROLLER, "admin", CREATE_ACLS, 2, {"creations": [_ALICE_MAY]})
        if response["results"][0]["errorCode"]:
            raise DemoFailedError("the ACL was not created")
        for number, attempt in enumerate(ATTEMPTS, 1):
            _try(console, demo, number, attempt)
        topics = demo.call(HONEST, "admin", 3, 4, _ALL_TOPICS)["topics"]
        names = ", ".join(sorted(topic["name"] for topic in topics))
        console.print(f"\nTopics at the end: {names}.")
        expect("topics", names, "orders")
    console.print("\n[bold green]Every outcome was the expected one.[/]")
    return 0


def _try(console: Console, demo: DemoCluster, number: int, attempt: Attempt) -> None:
    title(console, number, attempt.title)
    broker, metric = attempt.metric
    before = metrics_of(demo.cluster, broker)[f"{metric}_total"]
    code = attempt.send(demo)
    line = demo.logged(attempt.logged)
    after = metrics_of(demo.cluster, broker)[f"{metric}_total"]
    table = Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("error code", code)
    table.add_row("controller's log", line)
    name = metric.replace("_", "-")
    table.add_row("metric", f"{name}\nof broker {broker}: {before:g} -> {after:g}")
    console.print(table)
    expect("error code", code, attempt.code)
    expect(metric, f"{after:g}", f"{before + 1:g}")


def _properties() -> dict[str, str]:
    users = " ".join(f'user_{user}="{user}-secret"' for user in (*USERS, "broker"))
    login = 'username="broker" password="broker-secret"'
    return {
        "listeners": f"{LISTENER}://127.0.0.1:0",
        "inter.broker.listener.name": LISTENER,
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{_MODULE} {login} {users};",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:admin;User:broker",
        "bridgehead.authorizer.log": "DEBUG",
    }


def _channel(certificates: Path, broker: int) -> dict[str, str]:
    files = files_of(certificates, broker)
    return {
        "bridgehead.grpc.certificate": str(files.certificate),
        "bridgehead.grpc.key": str(files.key),
        "bridgehead.grpc.authority": str(files.authority),
    }


_ALL_TOPICS: Final = {"topics": None, "allowAutoTopicCreation": False}
_ALICE_MAY: Final = {
    "resourceType": 2,
    "resourceName": "orders",
    "resourcePatternType": 4,
    "principal": "User:alice",
    "host": "*",
    "operation": 5,
    "permissionType": 3,
}


def _forged(hello: Hello, topic: str) -> Envelope:
    return Envelope(
        identity=RequestIdentity(hello.broker_id, hello.incarnation, 1),
        request_header=encode_request_header(RequestHeader(CREATE_TOPICS, 4, 1, "mallory")),
        request_data=encode_body(CREATE_TOPICS, "request", 4, create_topic_body(topic)),
        principal=DefaultPrincipalSerde().serialize(KafkaPrincipal("User", "admin")),
        client_address=b"\x7f\0\0\1",
        listener_name=LISTENER,
        security_protocol=LISTENER,
        dialect="shipped",
        remaining_ms=5_000,
        request_id="forged",
    )


if __name__ == "__main__":
    sys.exit(main())
