"""`python -m chaos.demo [--data-dir DIR]`: runs the demo. Exit 0 only when all of it held."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
import urllib.request
from pathlib import Path

from confluent_kafka import KafkaException
from rich.console import Console
from rich.table import Table

from bridgehead.cluster import ClientHistory, Cluster, ClusterError, RunSettings
from chaos.demo.clients import Load, admin, alter_config, create_topic
from chaos.demo.stops import last_write_of, read_events, stops_of
from chaos.evidence.finding import read_run
from chaos.evidence.reading import EvidenceError
from chaos.history import History
from chaos.properties import PROPERTIES
from chaos.verdicts import Verdict, exit_code, judge, worst
from chaos.witness import read_transactions

SESSION_TIMEOUT_S = 2.0
TOPIC = "orders"
CREATE_TOPICS, INCREMENTAL_ALTER_CONFIGS = 19, 44
PROPERTIES_OF_BROKERS = {
    "zookeeper.session.timeout.ms": str(int(SESSION_TIMEOUT_S * 1000)),
    # Every broker says that it is the controller, as a client of KIP-590's bridge release may
    # find it: so the client's writes go to the broker it asked first, which must forward them.
    "bridgehead.metadata.controller.id": "self",
}
# The demo refuses nobody, leaves nobody in the dark and has no authorizer (D2, D4, A1); what is
# sent again is a matter of chance (F7).
PROVES = (
    *("W1", "W2", "W3", "W4", "W5", "W6", "D1", "D3", "D5", "F1", "F2", "F5", "R2"),
    *("K1", "K2", "K3", "K6"),
)
METRICS = (
    "num_client_forwarding_to_controller_count",
    "num_client_forwarding_to_controller_rate",
    "num_messages_redirected_count",
    "num_messages_redirected_rate",
    "request_forwarding_to_controller_authorization_fail_count",
)


class DemoFailedError(Exception):
    """Something that the demo promises did not hold."""


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return the exit code."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--data-dir", type=Path, default=Path(".demo"))
    options = parser.parse_args(arguments)
    console = Console(highlight=False)
    shutil.rmtree(options.data_dir, ignore_errors=True)
    try:
        _run(console, options.data_dir)
        return _judge(console, options.data_dir)
    except (DemoFailedError, ClusterError, EvidenceError, KafkaException) as failed:
        console.print(f"[bold red]The demo did not hold:[/] {failed}")
        return exit_code(Verdict.FAIL)


def _run(console: Console, data_dir: Path) -> None:
    _title(console, 1, "A Kafka cluster in which only the controller may write metadata")
    with console.status("Starting ZooKeeper and three brokers ..."):
        began = time.monotonic()
        cluster = Cluster(
            brokers=3,
            data_dir=data_dir,
            ports="auto",
            properties=PROPERTIES_OF_BROKERS,
            run=RunSettings(expected=PROVES),
        )
        cluster.start()
    try:
        controller = cluster.wait_for_controller()
        console.print(
            f"A real ZooKeeper at {cluster.zookeeper_connect} and three brokers at "
            f"{cluster.bootstrap_servers}: ready after {time.monotonic() - began:.1f} s.\n"
            f"Broker {controller} was elected controller: it alone writes to ZooKeeper."
        )
        asked = next(broker for broker in cluster.brokers if broker != controller)
        _forward(console, cluster, asked)
        _znodes(console, data_dir)
        _metrics(console, cluster, asked)
        _failover(console, cluster, controller)
    finally:
        with console.status("Stopping everything ..."):
            cluster.stop()


def _title(console: Console, number: int, text: str) -> None:
    console.print(f"\n[bold]{number}. {text}[/]")


def _forward(console: Console, cluster: Cluster, asked: int) -> None:
    _title(console, 2, f"A real client (confluent-kafka) asks broker {asked}, which is not it")
    client = admin(cluster.bootstrap_server(asked))
    create_topic(client, TOPIC, partitions=3, replicas=3)
    alter_config(client, TOPIC, {"retention.ms": "86400000"})
    events = list(read_events(cluster.evidence_dir))
    for api_key, words in (
        (CREATE_TOPICS, f"create topic {TOPIC} with 3 partitions on 3 brokers"),
        (INCREMENTAL_ALTER_CONFIGS, f"keep {TOPIC} for a day (retention.ms=86400000)"),
    ):
        table = Table("ms", "broker", "what happens", title=words, title_justify="left")
        for stop in stops_of(events, last_write_of(events, api_key)):
            table.add_row(f"{stop.at_ms:7.2f}", stop.node, stop.what)
        console.print(table)


def _znodes(console: Console, data_dir: Path) -> None:
    _title(console, 3, "What stands in ZooKeeper now, in Kafka's own layout (from its own log)")
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


def _metrics(console: Console, cluster: Cluster, asked: int) -> None:
    _title(console, 4, f"The five metrics that KIP-590 names, as broker {asked} counts them")
    url = cluster.brokers[asked].metrics_url
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  # our own, on loopback
        lines = answer.read().decode().splitlines()
    values = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in lines if line[:1] != "#"}
    for name in METRICS:
        value = values.get(f"{name}_total", values.get(name))
        if value is None:
            raise DemoFailedError(f"{url} does not show {name}")
        console.print(f"  {name.replace('_', '-'):60}{float(value):g}", soft_wrap=True)
    if float(values["num_messages_redirected_count_total"]) != 2:
        raise DemoFailedError("both writes should have been redirected, once each")


def _failover(console: Console, cluster: Cluster, controller: int) -> None:
    _title(
        console,
        5,
        f"The controller's process is killed while clients write (kill -9, {controller})",
    )
    others = [cluster.bootstrap_server(each) for each in cluster.brokers if each != controller]
    history = ClientHistory(cluster.evidence_dir, "demo")
    load = Load(others, history)
    load.start()
    with console.status("Clients create topics through the two other brokers ..."):
        warm = load.wait_for_more(50, timeout_s=30)
    at_kill = len(load.acknowledged)
    killed = time.monotonic()
    cluster.kill_node(controller)
    with console.status("Waiting for a successor; the clients just wait ..."):
        successor = cluster.wait_for_controller(other_than=controller, timeout_s=30)
        took_s = time.monotonic() - killed
        resumed = load.wait_for_more(50, timeout_s=30)
    load.stop()
    history.close()
    if not warm or not resumed:
        raise DemoFailedError("the clients did not get on; see the nodes' logs")
    if load.refused:
        raise DemoFailedError(f"{len(load.refused)} writes were refused, first {load.refused[0]}")
    console.print(
        f"{at_kill} topics were acknowledged before the kill, "
        f"{len(load.acknowledged) - at_kill} after it; none was refused.\n"
        f"Broker {successor} took office {took_s:.1f} s after the kill (ZooKeeper gives a dead "
        f"session {SESSION_TIMEOUT_S:g} s).\n"
        f"The longest that any client waited: {load.longest_wait_s:.1f} s. No client saw an error, "
        "and none was told that its own topic exists already."
    )


def _judge(console: Console, data_dir: Path) -> int:
    _title(
        console,
        6,
        "The judge reads what the brokers and ZooKeeper wrote, and believes neither alone",
    )
    judgements = list(judge(History(read_run(data_dir)), PROPERTIES))
    table = Table("verdict", "property", "judged", "what it promises")
    for each in judgements:
        colour = "green" if each.verdict is Verdict.PASS else "red" if each.decides else "dim"
        table.add_row(
            f"[{colour}]{each.verdict.value}[/]",
            f"{each.property.id} {each.property.name}",
            str(each.judged),
            each.property.promise + (f"\n{each.why}" if each.why else ""),
        )
    console.print(table)
    verdict = worst(judgements)
    console.print(
        f"[bold]{verdict.value}[/]: the evidence stays in {data_dir} "
        f"(bridgehead judge {data_dir} says the same)."
    )
    return exit_code(verdict)


if __name__ == "__main__":
    sys.exit(main())
