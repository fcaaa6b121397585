"""`bridgehead demo policies`: a topic policy of your own, which the controller calls (KIP-201).

Exit 0 only if every response is the expected one.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.syntax import Syntax

from bridgehead.cluster import Cluster, ClusterError
from bridgehead.raw_client.codec import Body, create_topic_body
from demo.console import DemoFailedError, expect, run_demo, running, table_of, title
from demo.requests import (
    deletion,
    first_result,
    folder_with_code,
    more_partitions,
)

CREATE, DELETE, DELETE_RECORDS, CREATE_PARTITIONS = 19, 20, 21, 37
ALTER_CONFIGS, REASSIGN = 44, 45
CLASS_NAME: Final = "topic.management.policy.class.name"
TIMEOUT_MS: Final = 1000
RULES: Final = """\
import time
from pathlib import Path
from bridgehead.policy import PolicyViolationException, TopicManagementPolicy


class Rules(TopicManagementPolicy):
    def validate_create_topic(self, request, cluster):
        if request.topic == "hangs":
            Path(__file__).with_name("hangs").touch()
            time.sleep(3600)
        self.check(request, cluster)

    def validate_alter_topic(self, request, cluster):
        self.check(request, cluster)

    def check(self, request, cluster):
        topic, state = request.topic, request.requested_state
        if state.replication_factor < 2 <= cluster.cluster_size():
            raise PolicyViolationException(f"{topic} needs two replicas.")
        if state.num_partitions > 4:
            raise PolicyViolationException(f"{topic} exceeds 4 partitions.")
        if state.configs.get("retention.ms") == "1":
            raise PolicyViolationException(f"{topic} must keep its records.")

    def validate_delete_topic(self, request, cluster):
        raise PolicyViolationException(f"{request.topic} must stay.")

    def validate_delete_records(self, request, cluster):
        raise PolicyViolationException("Records must not be deleted.")
"""
VIOLATION: Final = "POLICY_VIOLATION: "
RETENTION: Final[Body] = {
    "resources": [
        {
            "resourceType": 2,
            "resourceName": "ledger",
            "configs": [{"name": "retention.ms", "value": "1", "configOperation": 0}],
        }
    ],
    "validateOnly": False,
}
ONE_REPLICA: Final[Body] = {
    "timeoutMs": 10_000,
    "topics": [{"name": "ledger", "partitions": [{"partitionIndex": 0, "replicas": [2]}]}],
}
RECORDS: Final[Body] = {
    "timeoutMs": 10_000,
    "topics": [{"name": "ledger", "partitions": [{"partitionIndex": 0, "offset": -1}]}],
}
FEW_REPLICAS: Final = "orders needs two replicas."
# Description, API, version, body, expected result, the brokers that get the request.
# fmt: off
REQUESTS: Final[tuple[tuple[str, int, int, Body, str, tuple[int, ...]], ...]] = (
    ("create orders, 1 replica", CREATE, 7, create_topic_body("orders"),
     f"{VIOLATION}{FEW_REPLICAS}", (1, 2)),
    ("create orders, 9 partitions, dry run", CREATE, 7,
     create_topic_body("orders", 9, 2, validateOnly=True),
     f"{VIOLATION}orders exceeds 4 partitions.", (1, 2)),
    ("add partitions to ledger: 5", CREATE_PARTITIONS, 3, more_partitions("ledger", 5),
     f"{VIOLATION}ledger exceeds 4 partitions.", (1, 2)),
    ("set retention.ms=1 of ledger", ALTER_CONFIGS, 1, RETENTION,
     f"{VIOLATION}ledger must keep its records.", (1, 2)),
    ("reassign ledger to 1 replica", REASSIGN, 0, ONE_REPLICA,
     f"{VIOLATION}ledger needs two replicas.", (1, 2)),
    ("delete records of ledger, at its leader", DELETE_RECORDS, 2, RECORDS,
     "POLICY_VIOLATION", (1,)),
    ("delete ledger, version 4", DELETE, 4, deletion("ledger"), "UNKNOWN_SERVER_ERROR", (1, 2)),
    ("delete ledger, version 5", DELETE, 5, deletion("ledger"),
     f"{VIOLATION}ledger must stay.", (1, 2)),
)
# fmt: on


def main() -> int:
    """Run the demo; return the exit code."""
    return run_demo(_show)


def _show(console: Console) -> int:
    title(console, 1, "A policy is a class; the controller calls it for every topic (KIP-201)")
    console.print(Syntax(RULES, "python", background_color="default"))
    properties = {CLASS_NAME: "rules.Rules", "bridgehead.policy.timeout.ms": str(TIMEOUT_MS)}
    with folder_with_code("rules", RULES) as folder:
        cluster = Cluster(brokers=2, data_dir=folder / "run", controller=1, properties=properties)
        with running(console, cluster):
            _violations(console, cluster)
            _timeout(console, cluster, folder / "hangs")
            _missing_class(console, cluster, folder)
    console.print("\n[bold green]Every response was the expected one.[/]")
    return 0


def _create(cluster: Cluster, broker: int, name: str, partitions: int = 1) -> str:
    return first_result(
        cluster.bootstrap_server(broker), CREATE, 7, create_topic_body(name, partitions, 2)
    )


def _violations(console: Console, cluster: Cluster) -> None:
    title(console, 2, "The same policy decides, whichever broker receives the request")
    ledger = create_topic_body("ledger", -1, -1)
    ledger["topics"][0]["assignments"] = [{"partitionIndex": 0, "brokerIds": [1, 2]}]
    address = cluster.bootstrap_server(2)
    expect("create ledger", first_result(address, CREATE, 7, ledger), "NONE")
    table = table_of("request", "at broker", "result")
    for text, key, version, body, expected, brokers in REQUESTS:
        for broker in brokers:
            result = first_result(cluster.bootstrap_server(broker), key, version, body)
            expect(f"{text}, at broker {broker}", result, expected)
        table.add_row(text, " and ".join(map(str, brokers)), expected)
    console.print(table)
    console.print(
        "Broker 1 is the controller and leads ledger; broker 2 forwards. The policy on the leader "
        "checks DeleteRecords. DeleteTopics 4 has no POLICY_VIOLATION; the log has the reason:"
    )
    log = (cluster.data_dir / "nodes" / "1" / "node.log").read_text(encoding="utf-8")
    lines = [line for line in log.splitlines() if "a policy rejects ledger" in line]
    if not lines or "ledger must stay." not in lines[0]:
        raise DemoFailedError("the log does not name the policy's reason")
    console.print(lines[0], style="dim", markup=False)


def _timeout(console: Console, cluster: Cluster, hanging: Path) -> None:
    title(console, 3, f"The controller waits {TIMEOUT_MS / 1000:g} s for a policy that hangs")
    with ThreadPoolExecutor(1) as executor:
        began = time.monotonic()
        hangs = executor.submit(_create, cluster, 2, "hangs")
        while not hanging.exists() and not hangs.done():
            time.sleep(0.01)
        sent = time.monotonic()
        expect("create invoices", _create(cluster, 1, "invoices"), "NONE")
        quick_s = time.monotonic() - sent
        if hangs.done():
            raise DemoFailedError("the policy did not hang")
        slow = hangs.result()
        slow_s = time.monotonic() - began
    table = table_of("request", "response after", "result")
    table.add_row("create invoices, at the same time", f"{quick_s:.2f} s", "NONE")
    table.add_row("create hangs", f"{slow_s:.2f} s", slow)
    console.print(table)
    if not slow.startswith("UNKNOWN_SERVER_ERROR: ") or "rules.Rules" not in slow:
        raise DemoFailedError(f"create hangs: got {slow!r}")


def _missing_class(console: Console, running_one: Cluster, folder: Path) -> None:
    title(console, 4, "A broker whose policy class is missing does not start, and says why")
    cluster = Cluster(
        brokers=1,
        data_dir=folder / "none",
        zookeeper=f"{running_one.zookeeper_connect}/none",
        properties={CLASS_NAME: "rules.Missing"},
    )
    try:
        with console.status("Starting a broker with a missing class ..."):
            cluster.start()
    except ClusterError as failed:
        console.print(f"  {failed}")
    else:
        cluster.stop()
        raise DemoFailedError("a broker started without its policy")


if __name__ == "__main__":
    sys.exit(main())
