"""`python -m chaos.demo.authorization [--data-dir DIR]`: who may do what, and who tries anyway.

Four stories on one cluster, each shown by what the client saw, what the controller logged and which
metric moved. Exit 0 only when each came out as it must.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bridgehead.cluster import Cluster, ClusterError
from bridgehead.cluster.broker_certificates import files_of, make_certificates
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.json_form import decode_body, encode_body
from chaos.connection import Connection, request_bytes
from cluster_model.principal import KafkaPrincipal
from envelope.channel import ControllerChannel
from envelope.channel_security import ChannelFiles, broker_host, load_security
from envelope.messages import ChannelClosedError, Envelope, Hello, RequestIdentity
from envelope.principal_serde import DefaultPrincipalSerde

CONTROLLER, HONEST, IMPOSTOR, MALLORY = 1, 2, 3, 9
CREATE_TOPICS, CREATE_ACLS = 19, 30
LISTENER: Final = "SASL_PLAINTEXT"
USERS: Final = ("admin", "alice", "bob")
REDIRECTED: Final = "num_messages_redirected_count"
REFUSED: Final = "request_forwarding_to_controller_authorization_fail_count"
_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_PATIENCE_S: Final = 10.0


class DemoFailedError(Exception):
    """Something that the demo promises did not hold."""


@dataclass(frozen=True, slots=True)
class Story:
    """One thing that somebody tries. `metric` is the broker that counts it, and its name."""

    title: str
    act: Callable[[Scene], str]  # returns what the client saw
    saw: str
    logged: str  # a part of the line in the controller's kafka-authorizer.log
    metric: tuple[int, str]


class Scene:
    """The cluster: brokers 1 and 2 act as `broker`; the certificate of 3 names somebody else."""

    def __init__(self, cluster: Cluster, certificates: Path) -> None:
        self.cluster = cluster
        self._certificates = certificates

    def ask(self, broker: int, user: str, key: int, version: int, body: Any) -> Any:
        """Return the answer's body to a client that logged in with SASL PLAIN."""
        connection = Connection(self.cluster.bootstrap_server(broker, LISTENER))
        if not connection.log_in(user, f"{user}-secret"):
            raise DemoFailedError(f"{user} cannot log in at broker {broker}")
        answer = connection.ask(request_bytes(key, version, body))
        connection.close()
        if not isinstance(answer, bytes):
            raise DemoFailedError(f"broker {broker} did not answer {user}: {answer}")
        _, at = decode_response_header(key, version, answer)
        return decode_body(key, "response", version, answer[at:])

    def create(self, broker: int, user: str, topic: str) -> str:
        """Return what a client is told of a topic that it creates."""
        answer = self.ask(broker, user, CREATE_TOPICS, 4, _creation(topic))
        return ErrorCode(answer["topics"][0]["errorCode"]).name

    def forge(self, topic: str) -> str:
        """Send an Envelope of one's own making, in the name of User:admin."""
        return asyncio.run(self._forge(topic))

    async def _forge(self, topic: str) -> str:
        files = files_of(self._certificates, MALLORY)
        security = load_security(
            ChannelFiles(str(files.certificate), str(files.key), str(files.authority))
        )
        ready = self.cluster.data_dir / "nodes" / str(CONTROLLER) / "ready.json"
        hello = Hello(MALLORY, "forged", 1, "")
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
            async with asyncio.timeout(_PATIENCE_S):
                answer = await channel.send(_forged(hello, topic))
            return ErrorCode(answer.error_code).name
        except ChannelClosedError:
            return "the channel was closed"
        finally:
            await channel.close()

    def counted(self, broker: int, name: str) -> float:
        """Return a broker's counter."""
        url = self.cluster.brokers[broker].metrics_url
        with urllib.request.urlopen(url, timeout=5) as page:  # noqa: S310  # ours, on loopback
            lines = page.read().decode().splitlines()
        values = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in lines}
        return float(values[f"{name}_total"])

    def logged(self, part: str) -> str:
        """Return the last line of the controller's log that holds `part`, once it is there."""
        log = self.cluster.data_dir / "nodes" / str(CONTROLLER) / "logs" / "kafka-authorizer.log"
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            for line in reversed(log.read_text(encoding="utf-8").splitlines()):
                if part in line:
                    return line
            time.sleep(0.05)
        raise DemoFailedError(f"the controller's kafka-authorizer.log has no line with: {part}")


STORIES: Final = (
    Story(
        f"alice may: she creates a topic through broker {HONEST}, which forwards it",
        lambda scene: scene.create(HONEST, "alice", "orders"),
        "NONE",
        "Principal = User:alice is Allowed Operation = Create from host = 127.0.0.1",
        (HONEST, REDIRECTED),
    ),
    Story(
        "bob may not: the same request, the same way, in his own name",
        lambda scene: scene.create(HONEST, "bob", "invoices"),
        "TOPIC_AUTHORIZATION_FAILED",
        "Principal = User:bob is Denied Operation = Create from host = 127.0.0.1 on resource = "
        "Topic:LITERAL:invoices",
        (HONEST, REDIRECTED),
    ),
    Story(
        "mallory forges an Envelope: hers is a good certificate, and it says User:admin inside",
        lambda scene: scene.forge("stolen"),
        "CLUSTER_AUTHORIZATION_FAILED",
        "Principal = User:mallory is Denied Operation = ClusterAction",
        (CONTROLLER, REFUSED),
    ),
    Story(
        f"a broker with a wrong certificate forwards: alice asks broker {IMPOSTOR}, which acts as "
        "User:impostor",
        lambda scene: scene.create(IMPOSTOR, "alice", "orders-too"),
        "UNKNOWN_SERVER_ERROR",
        "Principal = User:impostor is Denied Operation = ClusterAction",
        (CONTROLLER, REFUSED),
    ),
)


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return the exit code."""
    parser = argparse.ArgumentParser(prog="demo authorization", description=__doc__)
    parser.add_argument("--data-dir", type=Path, default=Path(".demo-authorization"))
    options = parser.parse_args(arguments)
    console = Console(highlight=False)
    try:
        _make_room(options.data_dir)
        _run(console, options.data_dir)
    except (DemoFailedError, ClusterError, OSError) as failed:
        console.print(f"[bold red]The demo did not hold:[/] {failed}")
        return 1
    console.print("\n[bold green]Everything held.[/]")
    return 0


def _make_room(data_dir: Path) -> None:
    """Remove what an earlier run left there, and nothing else."""
    left = {each.name for each in data_dir.iterdir()} if data_dir.is_dir() else set()
    if left and not {"certificates", "nodes"} & left:
        raise DemoFailedError(f"{data_dir} holds something else: name a folder for the demo.")
    shutil.rmtree(data_dir, ignore_errors=True)


def _run(console: Console, data_dir: Path) -> None:
    certificates = (data_dir / "certificates").resolve()
    users = {CONTROLLER: "broker", HONEST: "broker", IMPOSTOR: "impostor", MALLORY: "mallory"}
    make_certificates(certificates, users)
    with console.status("Starting ZooKeeper and three brokers ..."):
        cluster = Cluster(
            brokers=3,
            controller=CONTROLLER,
            data_dir=data_dir,
            ports="auto",
            properties=_properties(),
            node_properties={broker: _channel(certificates, broker) for broker in (1, 2, 3)},
        )
        cluster.start()
    try:
        scene = Scene(cluster, certificates)
        console.print(
            f"Three brokers; broker {CONTROLLER} is controller. Super users: admin and broker.\n"
            "One ACL: User:alice may CREATE topics whose names begin with `orders`."
        )
        answer = scene.ask(CONTROLLER, "admin", CREATE_ACLS, 2, {"creations": [_ALICE_MAY]})
        if answer["results"][0]["errorCode"]:
            raise DemoFailedError("the ACL was not created")
        for number, story in enumerate(STORIES, 1):
            _tell(console, scene, number, story)
        topics = scene.ask(HONEST, "admin", 3, 4, _ALL_TOPICS)["topics"]
        names = sorted(topic["name"] for topic in topics)
        console.print(f"\nThe topics in the end: {', '.join(names)}.")
        if names != ["orders"]:
            raise DemoFailedError("only alice's topic should be there")
    finally:
        with console.status("Stopping everything ..."):
            cluster.stop()


def _tell(console: Console, scene: Scene, number: int, story: Story) -> None:
    console.print(f"\n[bold]{number}. {story.title}[/]")
    broker, metric = story.metric
    before = scene.counted(broker, metric)
    saw = story.act(scene)
    line, after = scene.logged(story.logged), scene.counted(broker, metric)
    table = Table(show_header=False)
    table.add_row("the client saw", saw)
    table.add_row("the controller logged", line)
    table.add_row(f"{metric.replace('_', '-')} of broker {broker}", f"{before:g} -> {after:g}")
    console.print(table)
    if saw != story.saw:
        raise DemoFailedError(f"the client should have seen {story.saw}")
    if after != before + 1:
        raise DemoFailedError(f"{metric} should have grown by one")


def _properties() -> dict[str, str]:
    users = " ".join(f'user_{user}="{user}-secret"' for user in USERS)
    return {
        "listeners": f"{LISTENER}://127.0.0.1:0",
        "inter.broker.listener.name": LISTENER,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{_MODULE} {users};",
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


def _creation(topic: str) -> Any:
    wanted = {
        "name": topic,
        "numPartitions": 1,
        "replicationFactor": 1,
        "assignments": [],
        "configs": [],
    }
    return {"topics": [wanted], "timeoutMs": 10_000, "validateOnly": False}


def _forged(hello: Hello, topic: str) -> Envelope:
    return Envelope(
        identity=RequestIdentity(hello.broker_id, hello.incarnation, 1),
        broker_epoch=1,
        request_header=encode_request_header(RequestHeader(CREATE_TOPICS, 4, 1, "mallory")),
        request_data=encode_body(CREATE_TOPICS, "request", 4, _creation(topic)),
        principal=DefaultPrincipalSerde().serialize(KafkaPrincipal("User", "admin")),
        client_host=b"\x7f\0\0\1",
        listener_name=LISTENER,
        security_protocol=LISTENER,
        dialect="shipped",
        remaining_ms=5_000,
        request_id="forged",
    )


if __name__ == "__main__":
    sys.exit(main())
