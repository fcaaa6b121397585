"""`bridgehead demo dialects`: the KIPs as drafted, beside Kafka as it shipped, on one cluster.

Exit 0 only if every response is the expected one.
"""

from __future__ import annotations

import sys
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from bridgehead.cluster import Cluster
from demo.console import expect, run_demo, running, title
from demo.requests import deletion, first_result, folder_with_code
from raw_client.codec import Body, create_topic_body

CREATE, DELETE, INCREMENTAL, ENVELOPE, ALTER_TOPICS = 19, 20, 44, 58, 10001
LISTENERS: Final = ("shipped", "drafted")
PROPERTIES: Final = {
    "listeners": "SHIPPED://:0,DRAFTED://:0",
    "listener.security.protocol.map": "SHIPPED:PLAINTEXT,DRAFTED:PLAINTEXT",
    "inter.broker.listener.name": "SHIPPED",
    "listener.name.drafted.bridgehead.dialect": "drafted",
    "auto.create.topics.enable": "false",
}


class Comparison(NamedTuple):
    """A request and the result in each dialect; None if the dialect does not have it."""

    text: str
    broker: int
    key: int
    version: int
    body: Body
    shipped: str | None
    drafted: str


def _retention() -> Body:
    config = {"name": "retention.ms", "value": "86400000", "configOperation": 0}
    resource = {"resourceType": 2, "resourceName": "orders", "configs": [config]}
    return {"resources": [resource], "validateOnly": False}


_ENVELOPE: Final[Body] = {
    **dict.fromkeys(("requestHeader", "requestData", "principalInfo"), "AAA="),
    "clientHostIP": "127.0.0.1",
    "listenerName": "L",
    "securityProtocol": "PLAINTEXT",
}
_MORE_PARTITIONS: Final[Body] = {
    "topics": [
        {"topic": "orders", "partitions": 3, "replicationFactor": -1, "replicaAssignment": []}
    ]
}
_EXISTS: Final = "TOPIC_ALREADY_EXISTS: Topic 'orders' already exists."
_INVALID_TOPIC: Final = (
    "INVALID_TOPIC_EXCEPTION: The request attempted to perform an operation on an invalid topic."
)
_MISSING: Final = "UNKNOWN_TOPIC_OR_PARTITION"
_DRY_RUN: Final = {"validateOnly": True}
_CREATION: Final = create_topic_body("orders", replicas=3)
# fmt: off
COMPARISONS: Final = tuple(Comparison(*row) for row in (
    ("KIP-4: create a topic at broker 2", 2, CREATE, 4, _CREATION, "NONE", "NOT_CONTROLLER"),
    ("... at broker 1, the controller", 1, CREATE, 4, _CREATION, _EXISTS, _EXISTS),
    ("KIP-590: IncrementalAlterConfigs v1 at broker 2", 2, INCREMENTAL, 1, _retention(),
     "NONE", "NONE"),
    ("... v2 at broker 2", 2, INCREMENTAL, 2, _retention(), None, "NOT_CONTROLLER"),
    ("... v2 at the controller", 1, INCREMENTAL, 2, _retention(), None, "NONE"),
    ("KIP-590: Envelope sent by a client", 2, ENVELOPE, 0, _ENVELOPE,
     None, "CLUSTER_AUTHORIZATION_FAILED"),
    ("KIP-4: delete a missing topic, v1", 1, DELETE, 1, deletion("nothing"),
     _MISSING, "INVALID_TOPIC_EXCEPTION"),
    ("KIP-201: the same in v2, dry run", 1, DELETE, 2, deletion("nothing", **_DRY_RUN),
     _MISSING, _INVALID_TOPIC),
    ("KIP-201: delete orders in v2, dry run", 1, DELETE, 2, deletion("orders", **_DRY_RUN),
     None, "NONE"),
    ("KIP-4: AlterTopics, 3 partitions", 1, ALTER_TOPICS, 0, _MORE_PARTITIONS, None, "NONE"),
))
# fmt: on


def main() -> int:
    """Run the demo; return the exit code."""
    return run_demo(_show)


def _show(console: Console) -> int:
    title(console, 1, "Three brokers, each with a listener for either dialect")
    for name, value in PROPERTIES.items():
        console.print(f"  {name}={value}")
    with folder_with_code("nothing", "") as folder:
        cluster = Cluster(brokers=3, data_dir=folder / "run", controller=1, properties=PROPERTIES)
        with running(console, cluster):
            title(console, 2, "The same request on both: one cluster, one state, two protocols")
            table = Table("request", *(f"{name} listener" for name in LISTENERS))
            for each in COMPARISONS:
                table.add_row(each.text, *(_result(cluster, each, name) for name in LISTENERS))
            console.print(table)
    console.print(
        "A dash: the dialect has no such request. docs/kips.md lists every statement of\n"
        "the five documents."
    )
    console.print("\n[bold green]Every response was the expected one.[/]")
    return 0


def _result(cluster: Cluster, each: Comparison, dialect: str) -> str:
    expected = each.shipped if dialect == "shipped" else each.drafted
    if expected is None:
        return "-"
    body = dict(each.body)
    if dialect == "shipped" and each.key == DELETE:
        body.pop("validateOnly", None)  # Only the drafted version 2 has this field.
    address = cluster.bootstrap_server(each.broker, dialect.upper())
    actual = first_result(address, each.key, each.version, body, dialect=dialect)
    return expect(each.text, actual, expected)


if __name__ == "__main__":
    sys.exit(main())
