"""Shared by all demos: titles, starting a cluster, expectations and the exit code."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaException
from rich.console import Console
from rich.table import Table

from bridgehead.cluster import Cluster, ClusterError
from judge.evidence.run_files import EvidenceError


class DemoFailedError(Exception):
    """An outcome is not the one that the demo expects."""


def title(console: Console, number: int, text: str) -> None:
    """Print the title of a step."""
    console.print(f"\n[bold]{number}. {text}[/]")


def table_of(*columns: str) -> Table:
    """Return a table that wraps long words instead of cutting them."""
    table = Table()
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def expect(subject: str, actual: str, expected: str) -> str:
    """Return `actual`. Raises DemoFailedError if it differs from `expected`."""
    if actual != expected:
        raise DemoFailedError(f"{subject}: got {actual!r}, expected {expected!r}")
    return actual


@contextmanager
def running(console: Console, cluster: Cluster) -> Iterator[Cluster]:
    """Start a cluster, and stop it at the end."""
    with console.status("Starting ZooKeeper and brokers ..."):
        cluster.start()
    try:
        yield cluster
    finally:
        with console.status("Stopping ..."):
            cluster.stop()


def metrics_of(cluster: Cluster, broker: int) -> dict[str, float]:
    """Return a broker's metrics by name and labels."""
    url = cluster.brokers[broker].metrics_url
    with urllib.request.urlopen(url, timeout=5) as page:  # noqa: S310  # our own, on loopback
        lines = page.read().decode().splitlines()
    samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


def run_demo(show: Callable[[Console], int]) -> int:
    """Run a demo; return its exit code. If it fails, print one sentence and return 1."""
    console = Console(highlight=False)
    try:
        return show(console)
    except (DemoFailedError, ClusterError, EvidenceError, KafkaException, OSError) as failed:
        console.print(f"[bold red]The demo failed:[/] {failed}")
        return 1
