"""`bridgehead demo dialects`: the KIPs as they were drafted, beside Kafka as it shipped.

Exit 0 only when every answer was the one that stands here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from bridgehead.cluster import Cluster, ClusterError
from chaos.demo.frames import (
    Body,
    NotAsPromisedError,
    ask,
    creation,
    deletion,
    folder_with_code,
    told,
)

CREATE, DELETE, INCREMENTAL, ENVELOPE, ALTER_TOPICS = 19, 20, 44, 58, 10001
LISTENERS: Final = ("shipped", "drafted")
PROPERTIES: Final = {
    "listeners": "SHIPPED://:0,DRAFTED://:0",
    "listener.security.protocol.map": "SHIPPED:PLAINTEXT,DRAFTED:PLAINTEXT",
    "inter.broker.listener.name": "SHIPPED",
    "listener.name.drafted.bridgehead.dialect": "drafted",
    "auto.create.topics.enable": "false",
}
CLOSED: Final = "the connection is closed"


class Question(NamedTuple):
    """One request, and what each dialect says to it; None: it does not exist there."""

    words: str
    broker: int
    key: int
    version: int
    body: Body
    shipped: str | None
    drafted: str
    bodies_differ: bool = False  # the version has other bytes where it shipped


def _kept_for(version: int) -> Body:
    config = {"name": "retention.ms", "value": "86400000", "configOperation": 0}
    resource = {"resourceType": 2, "resourceName": "orders", "configs": [config]}
    return {"resources": [resource], "validateOnly": version < 0}


def _without(body: Body, name: str) -> Body:
    return {key: value for key, value in body.items() if key != name}


_ENVELOPE: Final[Body] = {
    **dict.fromkeys(("requestHeader", "requestData", "principalInfo"), "AAA="),
    "clientHostIP": "127.0.0.1",
    "listenerName": "L",
    "securityProtocol": "PLAINTEXT",
}
_GROW: Final[Body] = {
    "topics": [
        {"topic": "orders", "partitions": 3, "replicationFactor": -1, "replicaAssignment": []}
    ]
}
MISSING: Final = (
    "INVALID_TOPIC_EXCEPTION: The request attempted to perform an operation on an invalid topic."
)
QUESTIONS: Final = (
    Question(
        "KIP-4: create, asked of broker 2",
        2,
        CREATE,
        4,
        creation("orders"),
        "NONE",
        "NOT_CONTROLLER",
    ),
    Question(
        "… of broker 1, the controller",
        1,
        CREATE,
        4,
        creation("orders"),
        "TOPIC_ALREADY_EXISTS: Topic 'orders' already exists.",
        "TOPIC_ALREADY_EXISTS: Topic 'orders' already exists.",
    ),
    Question(
        "KIP-590: IncrementalAlterConfigs v1 of broker 2",
        2,
        INCREMENTAL,
        1,
        _kept_for(1),
        "NONE",
        "NONE",
    ),
    Question("… v2 of broker 2", 2, INCREMENTAL, 2, _kept_for(2), None, "NOT_CONTROLLER"),
    Question("… v2 of the controller", 1, INCREMENTAL, 2, _kept_for(2), None, "NONE"),
    Question(
        "KIP-590: a client's own Envelope",
        2,
        ENVELOPE,
        0,
        _ENVELOPE,
        None,
        "CLUSTER_AUTHORIZATION_FAILED",
    ),
    Question(
        "KIP-4: delete what is not there, v1",
        1,
        DELETE,
        1,
        deletion("nothing"),
        "UNKNOWN_TOPIC_OR_PARTITION",
        "INVALID_TOPIC_EXCEPTION",
    ),
    Question(
        "KIP-201: the same in v2, dry run",
        1,
        DELETE,
        2,
        deletion("nothing", validateOnly=True),
        "UNKNOWN_TOPIC_OR_PARTITION",
        MISSING,
        bodies_differ=True,
    ),
    Question(
        "KIP-201: delete orders in v2, dry run",
        1,
        DELETE,
        2,
        deletion("orders", validateOnly=True),
        None,
        "NONE",
    ),
    Question("KIP-4: AlterTopics, 3 partitions", 1, ALTER_TOPICS, 0, _GROW, None, "NONE"),
)


def main() -> int:
    """Run the demo; return the exit code."""
    console = Console(highlight=False)
    try:
        with folder_with_code("nothing", "") as folder:
            _run(console, folder)
    except (NotAsPromisedError, ClusterError) as failed:
        console.print(f"[bold red]The demo did not hold:[/] {failed}")
        return 1
    console.print("\n[bold green]Every answer was the one that its dialect stands for.[/]")
    return 0


def _run(console: Console, folder: Path) -> None:
    console.print("\n[bold]1. Three brokers, each with a listener for either dialect[/]")
    for name, value in PROPERTIES.items():
        console.print(f"  {name}={value}")
    cluster = Cluster(brokers=3, data_dir=folder / "run", controller=1, properties=PROPERTIES)
    with console.status("Starting ZooKeeper and three brokers ..."):
        cluster.start()
    try:
        console.print(
            "\n[bold]2. The same request on both: one cluster, one state, two protocols[/]"
        )
        table = Table("asked", *(f"{name} listener" for name in LISTENERS))
        for question in QUESTIONS:
            table.add_row(question.words, _shipped(cluster, question), _drafted(cluster, question))
        console.print(table)
        console.print(
            "A dash: Kafka never had it, and its bytes would close the connection or mean\n"
            "something else. docs/kips.md has every statement of the five documents."
        )
    finally:
        with console.status("Stopping ..."):
            cluster.stop()


def _shipped(cluster: Cluster, question: Question) -> str:
    if question.shipped is None:
        return "-"
    body = _without(question.body, "validateOnly") if question.bodies_differ else question.body
    answer = told(
        ask(cluster, question.broker, question.key, question.version, body, listener="SHIPPED")
    )
    return _promised(question, answer, question.shipped)


def _drafted(cluster: Cluster, question: Question) -> str:
    answer = told(
        ask(
            cluster,
            question.broker,
            question.key,
            question.version,
            question.body,
            listener="DRAFTED",
            dialect="drafted",
        )
    )
    return _promised(question, answer, question.drafted)


def _promised(question: Question, answer: str, expected: str) -> str:
    if answer != expected:
        raise NotAsPromisedError(f"{question.words}: {answer!r} instead of {expected!r}")
    return answer


if __name__ == "__main__":
    sys.exit(main())
