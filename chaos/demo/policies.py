"""`bridgehead demo policies`: a policy of one's own, asked by the controller. KIP-201.

Exit 0 only when every answer was the one that stands here.
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
from chaos.demo.frames import (
    Body,
    NotAsPromisedError,
    ask,
    creation,
    deletion,
    folder_with_code,
    growth,
    told,
)

CREATE, DELETE, GROW = 19, 20, 37
NAME: Final = "topic.management.policy.class.name"
LIMIT_MS: Final = 2000
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
            raise PolicyViolationException(f"{request.topic} needs a second replica.")
        if state.num_partitions > 4:
            raise PolicyViolationException(f"{request.topic} may have 4 partitions at most.")

    def validate_delete_topic(self, request, cluster):
        raise PolicyViolationException(f"{request.topic} stays; ask the operators.")

    def validate_delete_records(self, request, cluster):
        raise PolicyViolationException("Records stay.")
"""
SECOND, AT_MOST = "needs a second replica.", "may have 4 partitions at most."
# What is asked, how it is said, and what the answer is.
ASKED: Final[tuple[tuple[str, int, int, Body, str], ...]] = (
    (
        "create orders, 1 replica",
        CREATE,
        7,
        creation("orders", 1, 1),
        f"POLICY_VIOLATION: orders {SECOND}",
    ),
    (
        "create orders, 9 partitions, dry run",
        CREATE,
        7,
        creation("orders", 9, validateOnly=True),
        f"POLICY_VIOLATION: orders {AT_MOST}",
    ),
    (
        "grow ledger to 5 partitions",
        GROW,
        3,
        growth("ledger", 5),
        f"POLICY_VIOLATION: ledger {AT_MOST}",
    ),
    ("delete ledger, version 4", DELETE, 4, deletion("ledger"), "UNKNOWN_SERVER_ERROR"),
    (
        "delete ledger, version 5",
        DELETE,
        5,
        deletion("ledger"),
        "POLICY_VIOLATION: ledger stays; ask the operators.",
    ),
)


def main() -> int:
    """Run the demo; return the exit code."""
    console = Console(highlight=False)
    try:
        with folder_with_code("rules", RULES) as folder:
            _run(console, folder)
    except (NotAsPromisedError, ClusterError) as failed:
        console.print(f"[bold red]The demo did not hold:[/] {failed}")
        return 1
    console.print("\n[bold green]Every answer was the one that the policy stands for.[/]")
    return 0


def _run(console: Console, folder: Path) -> None:
    _title(console, 1, "A policy is a class; the controller asks it about every topic (KIP-201)")
    console.print(Syntax(RULES, "python", background_color="default"))
    properties = {NAME: "rules.Rules", "bridgehead.policy.timeout.ms": str(LIMIT_MS)}
    cluster = Cluster(brokers=3, data_dir=folder / "run", controller=1, properties=properties)
    with console.status("Starting ZooKeeper and three brokers that know it ..."):
        cluster.start()
    try:
        _verdicts(console, cluster)
        _contained(console, cluster, folder / "hangs")
    finally:
        with console.status("Stopping ..."):
            cluster.stop()
    _refused(console, folder)


def _title(console: Console, number: int, text: str) -> None:
    console.print(f"\n[bold]{number}. {text}[/]")


def _verdicts(console: Console, cluster: Cluster) -> None:
    _title(console, 2, "The verdict is the controller's, whichever broker is asked")
    _promise(told(ask(cluster, 2, CREATE, 7, creation("ledger", 2))), "NONE")
    table = Table("asked", "of broker 1, the controller", "of broker 2, which forwards")
    for words, key, version, body, expected in ASKED:
        direct, forwarded = (told(ask(cluster, broker, key, version, body)) for broker in (1, 2))
        _promise(direct, expected)
        _promise(forwarded, expected)
        table.add_row(words, direct, forwarded)
    console.print(table)
    console.print("Version 4 of DeleteTopics is older than the code: the log says what it was.")


def _promise(answer: str, expected: str) -> None:
    if answer != expected:
        raise NotAsPromisedError(f"the answer was {answer!r} instead of {expected!r}")


def _contained(console: Console, cluster: Cluster, hanging: Path) -> None:
    _title(
        console,
        3,
        f"A policy that hangs is given up after {LIMIT_MS / 1000:g} s, and holds up nobody",
    )
    with ThreadPoolExecutor(1) as elsewhere:
        began = time.monotonic()
        hangs = elsewhere.submit(ask, cluster, 2, CREATE, 7, creation("hangs"))
        while not hanging.exists() and not hangs.done():
            time.sleep(0.01)
        asked = time.monotonic()
        quick = told(ask(cluster, 3, CREATE, 7, creation("invoices")))
        quick_s = time.monotonic() - asked
        _promise(quick, "NONE")
        if hangs.done():
            raise NotAsPromisedError("the policy was to hang, and did not")
        slow = told(hangs.result())
        slow_s = time.monotonic() - began
    table = Table("asked", "answered after", "with")
    table.add_row("create invoices, meanwhile", f"{quick_s:.2f} s", quick)
    table.add_row("create hangs", f"{slow_s:.2f} s", slow)
    console.print(table)
    _promise(
        slow,
        "UNKNOWN_SERVER_ERROR: Refused, because the policy rules.Rules did not decide within "
        f"{LIMIT_MS} ms.",
    )


def _refused(console: Console, folder: Path) -> None:
    _title(console, 4, "A policy that cannot be had keeps a broker from starting, in one sentence")
    cluster = Cluster(brokers=1, data_dir=folder / "none", properties={NAME: "rules.Missing"})
    try:
        with console.status("Starting a broker with a class that is not there ..."):
            cluster.start()
    except ClusterError as refused:
        console.print(f"  {refused}")
    else:
        cluster.stop()
        raise NotAsPromisedError("a broker started without its policy")


if __name__ == "__main__":
    sys.exit(main())
