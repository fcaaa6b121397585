"""`make demo`: one forwarded request, the znodes, the metrics, a failover, and the verdicts.

Exit 0 only if everything has the expected outcome.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bridgehead.cluster import ClientHistory, Cluster, RunSettings
from demo.clients import Load, admin, alter_config, create_topic
from demo.console import DemoFailedError, expect, metrics_of, run_demo, running, title
from demo.request_trace import read_events, requests_of, steps_of
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.properties import PROPERTY_SPECS
from judge.transaction_log import read_transactions
from judge.verdicts import Verdict, exit_code, judge, worst

SESSION_TIMEOUT_S = 2.0
TOPIC = "orders"
CREATE_TOPICS, INCREMENTAL_ALTER_CONFIGS = 19, 44
PROPERTIES_OF_BROKERS = {
    "zookeeper.session.timeout.ms": str(int(SESSION_TIMEOUT_S * 1000)),
}
# In Metadata, brokers 2 and 3 name themselves as controller, so their clients' writes go to them
# and are forwarded. Broker 1 is the controller until it is killed. It names broker 2, so that no
# client sends writes to broker 1: a write in flight to broker 1 at the kill would fail.
CONTROLLER = 1
CONTROLLER_IN_METADATA = {1: "2", 2: "self", 3: "self"}
# The properties that decide the result of the demo (docs/properties.md). D2, D4, A1 and A10 cannot
# be among them: they need rejections, timeouts, an authorizer or a login. F7 cannot either, because
# it needs resends, and whether there are any depends on timing.
PROVES = (
    *("W1", "W2", "W3", "W4", "W5", "W6", "D1", "D3", "D5", "F1", "F2", "F5", "R2"),
    *("K1", "K2", "K3", "K6", "K7"),
)
METRICS = (
    "num_client_forwarding_to_controller_count",
    "num_client_forwarding_to_controller_rate",
    "num_messages_redirected_count",
    "num_messages_redirected_rate",
    "request_forwarding_to_controller_authorization_fail_count",
)


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return the exit code."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--data-dir", type=Path, default=Path(".demo"))
    data_dir = parser.parse_args(arguments).data_dir
    shutil.rmtree(data_dir, ignore_errors=True)
    return run_demo(lambda console: _show(console, data_dir))


def _show(console: Console, data_dir: Path) -> int:
    title(console, 1, "A Kafka cluster in which only the controller writes metadata")
    began = time.monotonic()
    cluster = Cluster(
        brokers=3,
        data_dir=data_dir,
        ports="auto",
        controller=CONTROLLER,
        properties=PROPERTIES_OF_BROKERS,
        node_properties={
            broker: {"bridgehead.metadata.controller.id": named}
            for broker, named in CONTROLLER_IN_METADATA.items()
        },
        run=RunSettings(expected=PROVES),
    )
    with running(console, cluster):
        controller = cluster.wait_for_controller()
        console.print(
            f"ZooKeeper at {cluster.zookeeper_connect}\n"
            f"three brokers at {cluster.bootstrap_servers}\n"
            f"ready after {time.monotonic() - began:.1f} s; broker {controller} is the controller"
        )
        receiver = next(broker for broker in cluster.brokers if broker != controller)
        forwarded = _forward(console, cluster, receiver)
        _znodes(console, data_dir)
        _metrics(console, cluster, receiver, forwarded)
        _failover(console, cluster, controller)
    return _judge(console, data_dir)


def _forward(console: Console, cluster: Cluster, receiver: int) -> int:
    """Return how many of the two writes the broker got: a client may know other brokers by then."""
    title(console, 2, f"confluent-kafka sends two writes to broker {receiver}, which forwards them")
    address = cluster.bootstrap_server(receiver)
    # Each write gets a new client, which requests Metadata from this broker. An older client may
    # have got Metadata from another broker, and would then send the write to that broker.
    create_topic(admin(address), TOPIC, partitions=3, replicas=3)
    alter_config(admin(address), TOPIC, {"retention.ms": "86400000"})
    events, received = list(read_events(cluster.evidence_dir)), 0
    for api_key, text in (
        (CREATE_TOPICS, f"CreateTopics: {TOPIC}, 3 partitions, 3 replicas"),
        (INCREMENTAL_ALTER_CONFIGS, f"IncrementalAlterConfigs: {TOPIC}, retention.ms=86400000"),
    ):
        table = Table("ms", "broker", "step", title=text, title_justify="left")
        request = requests_of(events, api_key=api_key)[-1]
        received += request["node"] == str(receiver)
        for step in steps_of(events, request["request_id"]):
            table.add_row(f"{step.at_ms:7.2f}", step.node, step.text)
        console.print(table)
    return received


def _znodes(console: Console, data_dir: Path) -> None:
    title(console, 3, "The znodes, in Kafka's layout (read from ZooKeeper's transaction log)")
    content: dict[str, bytes | None] = {}
    for transaction in read_transactions(_zookeeper(data_dir)):
        if not transaction.failed:
            for operation in transaction.operations:
                if operation.kind in ("create", "set"):
                    content[operation.path] = operation.data
    for path in (
        "/controller",
        "/controller_epoch",
        f"/brokers/topics/{TOPIC}",
        f"/brokers/topics/{TOPIC}/partitions/0/state",
        f"/config/topics/{TOPIC}",
    ):
        text = (content.get(path) or b"").decode()
        console.print(f"  {path}\n      {text}", markup=False, soft_wrap=True)
        if not text:
            raise DemoFailedError(f"{path} is not in ZooKeeper")


def _zookeeper(data_dir: Path) -> Path:
    (version,) = (data_dir / "zookeeper").rglob("version-2")
    return version.parent


def _metrics(console: Console, cluster: Cluster, receiver: int, forwarded: int) -> None:
    title(console, 4, f"The five metrics of KIP-590 on broker {receiver}")
    values = metrics_of(cluster, receiver)
    for name in METRICS:
        value = values.get(f"{name}_total", values.get(name))
        if value is None:
            raise DemoFailedError(f"broker {receiver} does not expose {name}")
        console.print(f"  {name.replace('_', '-'):60}{value:g}", soft_wrap=True)
    redirected = values["num_messages_redirected_count_total"]
    expect("num-messages-redirected-count", f"{redirected:g}", str(forwarded))


def _failover(console: Console, cluster: Cluster, controller: int) -> None:
    title(console, 5, f"Broker {controller}, the controller, is killed under load (kill -9)")
    others = [
        cluster.bootstrap_server(broker) for broker in cluster.brokers if broker != controller
    ]
    history = ClientHistory(cluster.evidence_dir, "demo")
    load = Load(others, history)
    load.start()
    with console.status("Clients create topics through the other brokers ..."):
        worked_before = load.wait_for_more(50, timeout_s=30)
    at_kill = len(load.acknowledged)
    killed = time.monotonic()
    cluster.kill_node(controller)
    with console.status("Waiting for the next controller ..."):
        successor = cluster.wait_for_controller(other_than=controller, timeout_s=30)
        took_s = time.monotonic() - killed
        worked_after = load.wait_for_more(50, timeout_s=30)
    load.stop()
    history.close()
    if not worked_before or not worked_after:
        raise DemoFailedError("the clients made no progress; see the nodes' logs")
    if load.failed:
        raise DemoFailedError(f"{len(load.failed)} writes failed, the first: {load.failed[0]}")
    console.print(
        f"{at_kill} topics were acknowledged before the kill, "
        f"{len(load.acknowledged) - at_kill} after it; none failed.\n"
        f"Broker {successor} became controller after {took_s:.1f} s (session timeout: "
        f"{SESSION_TIMEOUT_S:g} s).\n"
        f"Longest response time: {load.longest_wait_s:.1f} s. No client saw an error; no write was "
        "executed twice."
    )


def _judge(console: Console, data_dir: Path) -> int:
    title(console, 6, "The judge checks the run's properties on the evidence")
    rows = [judgement.row for judgement in judge(History(read_run(data_dir)))]
    table = Table("verdict", "checked", "property: its name and what it states")
    for row, spec in zip(rows, PROPERTY_SPECS, strict=True):
        colour = "green" if row.verdict is Verdict.PASS else "red" if row.decides else "dim"
        table.add_row(
            f"[{colour}]{row.verdict}[/]",
            str(row.judged),
            f"[bold]{row.property} {row.name}[/]\n{spec.statement}"
            + (f"\n[dim]{row.why}[/]" if row.why else ""),
        )
    console.print(table)
    verdict = worst(rows)
    console.print(
        f"[bold]{verdict}[/]. The evidence is in {data_dir}; "
        f"`bridgehead judge {data_dir}` repeats this."
    )
    return exit_code(verdict)


if __name__ == "__main__":
    sys.exit(main())
