"""A hundred thousand topics and two thousand connections. The run is long, and bounded by time.

`HOSTILE_TOPICS`, `HOSTILE_CONNECTIONS` and `HOSTILE_MINUTES` change its size.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import AdminClient, NewTopic

from tests.hostile.family import Report, cluster, node_logs, resident_bytes
from tests.hostile.target import bridgehead
from tests.hostile.wire import Wire, array, head, i8, joined, text

TOPICS: Final = int(os.environ.get("HOSTILE_TOPICS", "100000"))
CONNECTIONS: Final = int(os.environ.get("HOSTILE_CONNECTIONS", "2000"))
MINUTES: Final = float(os.environ.get("HOSTILE_MINUTES", "20"))
BATCH: Final = 500
ONE_TOPIC_S_MAX: Final = 30.0


class Crowd:
    """Connections that each ask for the metadata of one topic, again and again."""

    def __init__(self, addresses: list[str], count: int) -> None:
        with ThreadPoolExecutor(16) as pool:
            self.wires = list(pool.map(lambda n: Wire(addresses[n % len(addresses)]), range(count)))
        self.responded = 0
        self.closed = 0
        self.longest_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Crowd:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for wire in self.wires:
            wire.__exit__(None, None, None)

    def _ask(self) -> None:
        request = joined([*head(3, 4), *array(text("many-0")), i8(0)])  # do not create it
        alive = list(self.wires)
        while not self._stop.is_set() and alive:
            for wire in list(alive):
                if self._stop.is_set():
                    return
                began = time.monotonic()
                if isinstance(wire.call(request), bytes):
                    self.responded += 1
                else:
                    self.closed += 1
                    alive.remove(wire)
                self.longest_s = max(self.longest_s, time.monotonic() - began)


def create_many_topics(folder: Path, report: Report) -> None:
    """Create topics until all exist or the time is over; then kill the controller."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, CONNECTIONS + 1_000), hard))
    count = min(CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 500)
    data = folder / "data"
    try:
        with cluster(data) as document:
            addresses = [next(iter(node["listeners"].values())) for node in document["brokers"]]
            pids = {node["id"]: node["pid"] for node in document["brokers"]}
            before = {broker: resident_bytes(pid) for broker, pid in pids.items()}
            admin = AdminClient(
                {"bootstrap.servers": document["bootstrap_servers"], "log_level": 0}
            )
            with Crowd(addresses, count) as crowd:
                began = time.monotonic()
                created = _create(admin, began + 60 * MINUTES)
                seconds = time.monotonic() - began
                report.expect(not crowd.closed, f"{crowd.closed} of {count} connections closed")
                grown = max(resident_bytes(pid) - before[broker] for broker, pid in pids.items())
            _after_a_failover(document["bootstrap_servers"], data, created, report)
            alive = [broker for broker, pid in pids.items() if Path(f"/proc/{pid}").exists()]
            report.expect(len(alive) == len(pids) - 1, f"only the brokers {alive} are alive")
            text_ = node_logs(data)
            trace = text_.partition("Traceback")[2][:800]
            report.expect("Traceback" not in text_, f"a traceback: {trace}")
            per_topic = grown / max(created, 1)
            report.figures += [
                f"many topics: {created:,} of {TOPICS:,} in {seconds:.0f} s with {count:,} "
                f"connections ({created / seconds:.0f} topics/s)",
                f"many topics: {crowd.responded:,} requests of the connections answered, the "
                f"longest wait was {crowd.longest_s:.1f} s",
                f"many topics: a broker grew by {grown / 1e6:.0f} MB, {per_topic / 1e3:.1f} kB "
                "for each topic",
            ]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _create(admin: AdminClient, deadline: float) -> int:
    """Return how many topics were acknowledged."""
    created = 0
    while created < TOPICS and time.monotonic() < deadline:
        last = min(created + BATCH, TOPICS)
        topics = [NewTopic(f"many-{number}", 1, 1) for number in range(created, last)]
        futures: dict[str, Any] = admin.create_topics(topics, request_timeout=120)
        for future in futures.values():
            future.result(timeout=150)
        created = last
    return created


def _after_a_failover(servers: str, data: Path, created: int, report: Report) -> None:
    """Kill the controller; the next one must serve, and know every topic.

    A client that was connected before may wait minutes for its next Metadata request
    (docs/tools.md), so this is a new one.
    """
    bridgehead("controller", "kill", "--data-dir", str(data), check=False)
    bridgehead("controller", "wait", "--data-dir", str(data), check=False)
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    began, done = time.monotonic(), False
    while not done and time.monotonic() - began < 180:
        try:
            topic = NewTopic("after", 1, 1)
            admin.create_topics([topic], request_timeout=20)["after"].result(timeout=30)
            done = True
        except Exception as error:
            done = "TOPIC_ALREADY_EXISTS" in str(error)
    seconds = time.monotonic() - began
    report.expect(done, "no topic could be created after a failover")
    report.figures.append(f"many topics: the first creation after a failover took {seconds:.1f} s")
    listed = len(admin.list_topics(timeout=120).topics)
    report.expect(listed == created + 1, f"{listed} of {created + 1} topics after a failover")
