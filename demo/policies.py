"""`bridgehead demo policies`: a topic policy of your own, checked by the controller. KIP-201.

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
from rich.table import Table

from bridgehead.cluster import Cluster, ClusterError
from demo.console import DemoFailedError, expect, run_demo, running, title
from demo.requests import (
    deletion,
    first_result,
    folder_with_code,
    more_partitions,
)
from raw_client.codec import Body, create_topic_body

CREATE, DELETE, CREATE_PARTITIONS = 19, 20, 37
CLASS_NAME: Final = "topic.management.policy.class.name"
TIMEOUT_MS: Final = 2000
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
        state = request.requested_state
        if state.replication_factor < 2 <= cluster.cluster_size():
            raise PolicyViolationException(f"{request.topic} needs two replicas.")
        if state.num_partitions > 4:
            raise PolicyViolationException(f"{request.topic} exceeds 4 partitions.")

    def validate_delete_topic(self, request, cluster):
        raise PolicyViolationException(f"{request.topic} must not be deleted.")

    def validate_delete_records(self, request, cluster):
        raise PolicyViolationException("Records must not be deleted.")
"""
VIOLATION: Final = "POLICY_VIOLATION: "
# Description, API, version, body, expected result.
REQUESTS: Final[tuple[tuple[str, int, int, Body, str], ...]] = (
    (
        "create orders, 1 replica",
        CREATE,
        7,
        create_topic_body("orders"),
        f"{VIOLATION}orders needs two replicas.",
    ),
    (
        "create orders, 9 partitions, dry run",
        CREATE,
        7,
        create_topic_body("orders", 9, 3, validateOnly=True),
        f"{VIOLATION}orders exceeds 4 partitions.",
    ),
    (
        "increase ledger to 5 partitions",
        CREATE_PARTITIONS,
        3,
        more_partitions("ledger", 5),
        f"{VIOLATION}ledger exceeds 4 partitions.",
    ),
    ("delete ledger, version 4", DELETE, 4, deletion("ledger"), "UNKNOWN_SERVER_ERROR"),
    (
        "delete ledger, version 5",
        DELETE,
        5,
        deletion("ledger"),
        f"{VIOLATION}ledger must not be deleted.",
    ),
)


def main() -> int:
    """Run the demo; return the exit code."""
    return run_demo(_show)


def _show(console: Console) -> int:
    title(console, 1, "A policy is a class; the controller calls it for every topic (KIP-201)")
    console.print(Syntax(RULES, "python", background_color="default"))
    properties = {CLASS_NAME: "rules.Rules", "bridgehead.policy.timeout.ms": str(TIMEOUT_MS)}
    with folder_with_code("rules", RULES) as folder:
        cluster = Cluster(brokers=3, data_dir=folder / "run", controller=1, properties=properties)
        with running(console, cluster):
            _violations(console, cluster)
            _timeout(console, cluster, folder / "hangs")
        _missing_class(console, folder)
    console.print("\n[bold green]Every response was the expected one.[/]")
    return 0


def _create(cluster: Cluster, broker: int, name: str, partitions: int = 1) -> str:
    return first_result(
        cluster.bootstrap_server(broker), CREATE, 7, create_topic_body(name, partitions, 3)
    )


def _violations(console: Console, cluster: Cluster) -> None:
    title(console, 2, "The controller's policy decides, whichever broker receives the request")
    expect("create ledger", _create(cluster, 2, "ledger", 2), "NONE")
    table = Table("request", "at broker 1, the controller", "at broker 2, which forwards")
    for text, key, version, body, expected in REQUESTS:
        results = (
            expect(text, first_result(cluster.bootstrap_server(each), key, version, body), expected)
            for each in (1, 2)
        )
        table.add_row(text, *results)
    console.print(table)
    console.print("DeleteTopics 4 predates POLICY_VIOLATION; the controller's log has the reason.")


def _timeout(console: Console, cluster: Cluster, hanging: Path) -> None:
    title(console, 3, f"A policy that hangs is abandoned after {TIMEOUT_MS / 1000:g} s")
    with ThreadPoolExecutor(1) as executor:
        began = time.monotonic()
        hangs = executor.submit(_create, cluster, 2, "hangs")
        while not hanging.exists() and not hangs.done():
            time.sleep(0.01)
        sent = time.monotonic()
        expect("create invoices", _create(cluster, 3, "invoices"), "NONE")
        quick_s = time.monotonic() - sent
        if hangs.done():
            raise DemoFailedError("the policy did not hang")
        slow = hangs.result()
        slow_s = time.monotonic() - began
    table = Table("request", "response after", "result")
    table.add_row("create invoices, at the same time", f"{quick_s:.2f} s", "NONE")
    table.add_row("create hangs", f"{slow_s:.2f} s", slow)
    console.print(table)
    if not slow.startswith("UNKNOWN_SERVER_ERROR: ") or "rules.Rules" not in slow:
        raise DemoFailedError(f"create hangs: got {slow!r}")


def _missing_class(console: Console, folder: Path) -> None:
    title(console, 4, "A broker whose policy class is missing does not start, and says why")
    cluster = Cluster(brokers=1, data_dir=folder / "none", properties={CLASS_NAME: "rules.Missing"})
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
