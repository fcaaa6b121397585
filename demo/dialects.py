"""`bridgehead demo dialects`: the KIPs as drafted, compared with Kafka as it shipped.

Exit 0 only if every response is the expected one.
"""

from __future__ import annotations

import json
import sys
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from bridgehead.cluster import Cluster
from bridgehead.raw_client.codec import Body, create_topic_body
from demo.console import expect, run_demo, running, title
from demo.requests import deletion, first_result, folder_with_code

CREATE, DELETE, INCREMENTAL, ENVELOPE, ALTER_TOPICS = 19, 20, 44, 58, 10001
LISTENERS: Final = ("shipped", "drafted")
# Wide enough for the longest error code; with its borders the table has 80 columns.
COLUMNS: Final = {"request": 16, "shipped listener": 26, "drafted listener": 28}
PROPERTIES: Final = {
    "listeners": "SHIPPED://:0,DRAFTED://:0",
    "listener.security.protocol.map": "SHIPPED:PLAINTEXT,DRAFTED:PLAINTEXT",
    "inter.broker.listener.name": "SHIPPED",
    "listener.name.drafted.bridgehead.dialect": "drafted",
    "auto.create.topics.enable": "false",
}


class Comparison(NamedTuple):
    """A request and the result in each dialect.

    `{dialect}` in the body is replaced by the dialect's name. `shipped_body` is the body for the
    shipped dialect, if its fields differ.
    """

    text: str
    broker: int
    key: int
    version: int
    body: Body
    shipped: str
    drafted: str
    shipped_body: Body | None = None


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
_SHIPPED_ENVELOPE: Final[Body] = {
    "requestData": "AAA=", "requestPrincipal": "AAA=", "clientHostAddress": "fwAAAQ=="
}  # fmt: skip
_INVALID_TOPIC: Final = (
    "INVALID_TOPIC_EXCEPTION: The request attempted to perform an operation on an invalid topic."
)
_MISSING: Final = "UNKNOWN_TOPIC_OR_PARTITION"
_DRY_RUN: Final = {"validateOnly": True}
# The broker does not know the API or the version, and closes the connection.
_CLOSED: Final = "connection closed"
_CREATION: Final = create_topic_body("orders", replicas=2)
_OWN_CREATION: Final = create_topic_body("payments-{dialect}", replicas=2)
# fmt: off
COMPARISONS: Final = tuple(Comparison(*row) for row in (
    ("KIP-4: create orders at broker 2", 2, CREATE, 4, _CREATION, "NONE", "NOT_CONTROLLER"),
    ("... payments at broker 1, the controller", 1, CREATE, 4, _OWN_CREATION, "NONE", "NONE"),
    ("KIP-590: change a config, v1 at broker 2", 2, INCREMENTAL, 1, _retention(), "NONE", "NONE"),
    ("... v2 at broker 2", 2, INCREMENTAL, 2, _retention(), _CLOSED, "NOT_CONTROLLER"),
    ("... v2 at the controller", 1, INCREMENTAL, 2, _retention(), _CLOSED, "NONE"),
    ("KIP-590: Envelope of a client, at broker 2", 2, ENVELOPE, 0, _ENVELOPE,
     "NOT_CONTROLLER", "NOT_CONTROLLER", _SHIPPED_ENVELOPE),
    ("KIP-4: delete a missing topic, v1", 1, DELETE, 1, deletion("nothing"),
     _MISSING, "INVALID_TOPIC_EXCEPTION"),
    ("KIP-201: the same in v2, dry run", 1, DELETE, 2, deletion("nothing", **_DRY_RUN),
     _MISSING, _INVALID_TOPIC, deletion("nothing")),
    ("KIP-4: AlterTopics, 3 partitions", 1, ALTER_TOPICS, 0, _MORE_PARTITIONS, _CLOSED, "NONE"),
))
# fmt: on


def main() -> int:
    """Run the demo; return the exit code."""
    return run_demo(_show)


def _show(console: Console) -> int:
    title(console, 1, "Two brokers, each with a listener for each dialect")
    for name, value in PROPERTIES.items():
        console.print(f"  {name}={value}")
    with folder_with_code("nothing", "") as folder:
        cluster = Cluster(brokers=2, data_dir=folder / "run", controller=1, properties=PROPERTIES)
        with running(console, cluster):
            title(console, 2, "The same requests on both listeners of the cluster")
            table = Table()
            for name, width in COLUMNS.items():
                table.add_column(name, width=width)
            for comparison in COMPARISONS:
                table.add_row(
                    comparison.text, *(_result(cluster, comparison, name) for name in LISTENERS)
                )
            console.print(table)
    console.print(
        "IncrementalAlterConfigs v2 and AlterTopics never shipped: the shipped listener closes the "
        "connection. DeleteTopics v2 shipped without a dry run. The controller executes a client's "
        "Envelopes on drafted listeners and on the inter-broker listener, here the shipped one. "
        "docs/kips.md lists every statement of the KIPs."
    )
    console.print("\n[bold green]Every response was the expected one.[/]")
    return 0


def _result(cluster: Cluster, comparison: Comparison, dialect: str) -> str:
    is_shipped = dialect == "shipped"
    expected, body, written_as = comparison.drafted, comparison.body, dialect
    if is_shipped:
        expected, body = comparison.shipped, comparison.shipped_body or comparison.body
    if expected == _CLOSED:
        written_as = "drafted"  # The shipped dialect has no such request.
    address = cluster.bootstrap_server(comparison.broker, dialect.upper())
    body = json.loads(json.dumps(body).replace("{dialect}", dialect))
    actual = first_result(address, comparison.key, comparison.version, body, dialect=written_as)
    if actual.endswith(": closed"):
        actual = _CLOSED
    return expect(comparison.text, actual, expected)


if __name__ == "__main__":
    sys.exit(main())
