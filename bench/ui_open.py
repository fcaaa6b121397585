"""What an open page costs: `python -m bench.ui_open --minutes 20`.

A cluster gets 500 config changes a second, most of which a broker forwards. Rounds with and without
the page in a browser alternate: the rate of this load, and that of a load without a limit. Other
work on the machine changes rates more than a page does, so the processor time of a request is
compared, too: that of the nodes, of ZooKeeper and of the client. Then the page stays open; memory
of its server and of the browser is measured every five seconds, and their processor time once.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import psutil
from playwright.sync_api import Page, sync_playwright

from bench.bulk_creates import create, names
from bench.node_profile import config_changes
from bench.report import median, progress, record, spread
from bridgehead.application import module_command, module_environment
from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.raw_client.asynchronous import AsyncConnection
from bridgehead.raw_client.codec import decode_message

RATE: Final = 500
_CHANGE: Final = ApiKey.INCREMENTAL_ALTER_CONFIGS
_CONNECTIONS: Final = 8  # at each broker
_SAMPLE_S: Final = 5.0
_ROUND_S: Final = 10.0
_ROUNDS: Final = 8
_SHOWN: Final = 12  # points of a curve
_MIB: Final = 1 << 20


@dataclass(slots=True)
class Load:
    """Config changes at all brokers, in a thread of its own. `rate` 0: as many as possible."""

    addresses: Sequence[str]
    topics: Sequence[str]
    rate: float
    done: int = 0
    latencies: list[float] = field(default_factory=list)
    failure: Exception | None = None
    _stops: bool = False

    def run(self) -> None:
        """Send requests until `stop`."""
        try:
            asyncio.run(self._run())
        except (OSError, EOFError, RuntimeError) as error:
            self.failure = error

    async def _run(self) -> None:
        workers = len(self.addresses) * _CONNECTIONS
        began = time.perf_counter()
        jobs = (
            self._work(address, began, number, workers)
            for number, address in enumerate(list(self.addresses) * _CONNECTIONS)
        )
        await asyncio.gather(*jobs)

    async def _work(self, address: str, began: float, number: int, workers: int) -> None:
        connection = await AsyncConnection.open(address)
        for round_ in itertools.count():
            for at, request in enumerate(config_changes(self.topics, round_ * workers + number)):
                if self._stops:
                    connection.close()
                    return
                if self.rate:
                    sent = round_ * len(self.topics) + at
                    due = began + (sent * workers + number) / self.rate
                    await asyncio.sleep(max(due - time.perf_counter(), 0))
                started = time.perf_counter()
                response = await connection.exchange(request)
                (result,) = decode_message(_CHANGE, 1, response).responses
                if result.error_code:
                    raise RuntimeError(f"a config change failed: {result}")
                self.latencies.append(time.perf_counter() - started)
                self.done += 1

    def stop(self) -> None:
        """End the load after the requests that were sent."""
        self._stops = True


@contextmanager
def loading(cluster: Cluster, topics: Sequence[str], rate: float) -> Iterator[Load]:
    """Load the cluster until the block ends."""
    addresses = [cluster.bootstrap_server(broker) for broker in sorted(cluster.brokers)]
    load = Load(addresses, topics, rate)
    thread = threading.Thread(target=load.run)
    thread.start()
    try:
        yield load
    finally:
        load.stop()
        thread.join()
    if load.failure is not None:
        raise load.failure


@dataclass(slots=True)
class OpenPage:
    """The page of a cluster: its server and a browser."""

    server: subprocess.Popen[Any]
    page: Page

    def memory(self) -> tuple[float, float, float]:
        """Return MiB of the server, of the browser, and of the page's objects."""
        server, decoder, browser = self._processes()
        heap = self.page.evaluate("() => performance.memory.usedJSHeapSize")
        return _unique_mib(server + decoder), _unique_mib(browser), heap / _MIB

    def processor_s(self) -> dict[str, float]:
        """Return the processor time of the server, of its decoder and of the browser so far."""
        names = ("server", "decoder of transactions", "browser")
        groups = zip(names, self._processes(), strict=True)
        return {name: sum(sum(p.cpu_times()[:2]) for p in group) for name, group in groups}

    def _processes(self) -> tuple[list[psutil.Process], list[psutil.Process], list[psutil.Process]]:
        server = psutil.Process(self.server.pid)
        children = psutil.Process().children(recursive=True)
        return [server], server.children(), [p for p in children if "chrom" in p.name()]


def _unique_mib(processes: Sequence[psutil.Process]) -> float:
    total = 0
    for process in processes:
        try:
            total += process.memory_full_info().uss
        except psutil.NoSuchProcess:
            continue
    return total / _MIB


@contextmanager
def opened(cluster: Cluster) -> Iterator[OpenPage]:
    """Serve the page of a cluster, and open it in Chromium."""
    command = module_command("bridgehead", "ui", "--data-dir", str(cluster.data_dir))
    server: subprocess.Popen[Any] = subprocess.Popen(
        command, env=module_environment(), stdout=subprocess.PIPE, stderr=sys.stderr, text=True
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        with sync_playwright() as playwright:
            arguments = ["--no-sandbox", "--enable-precise-memory-info"]
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=arguments
            )
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(address)
            page.wait_for_selector("body[data-ready=true]", timeout=300_000)
            yield OpenPage(server, page)
            browser.close()
    finally:
        server.terminate()
        server.wait()


def memory_over(minutes: float, cluster: Cluster, topics: Sequence[str]) -> list[str]:
    """Return how memory grows while the page is open under the bounded load."""
    samples = []
    with opened(cluster) as shown, loading(cluster, topics, RATE) as load:
        began, used_before = time.monotonic(), shown.processor_s()
        while time.monotonic() - began < minutes * 60:
            shown.page.wait_for_timeout(_SAMPLE_S * 1000)
            samples.append(shown.memory())
            if len(samples) % 12 == 0:
                progress(f"ui-open: {len(samples) * _SAMPLE_S / 60:.0f} minutes")
        took_s = time.monotonic() - began
        used = {name: time_s - used_before[name] for name, time_s in shown.processor_s().items()}
        notices = shown.page.locator("#notices").inner_text()
        count = shown.page.evaluate("() => page.evidence.count")
        behind = shown.page.evaluate(
            "() => Date.now() - page.evidence.startedMs - page.evidence.column.t[page.evidence.last"
            " - page.evidence.base]"
        )
    lines = [f"{minutes:g} minutes: {load.done / took_s:.0f} requests/s of {RATE}, {notices}"]
    shares = ", ".join(f"{name} {100 * time_s / took_s:.0f} %" for name, time_s in used.items())
    lines.append(f"of one processor: {shares}; {count:,} events")
    lines.append(f"the page is {behind / 1000:.1f} s behind the cluster at the end")
    quarter = max(len(samples) // 4, 1)
    for name, values in zip(
        ("server", "browser", "objects"), zip(*samples, strict=True), strict=True
    ):
        curve = " ".join(f"{value:.0f}" for value in values[:: max(len(values) // _SHOWN, 1)])
        growth = median(values[-quarter:]) / median(values[quarter : 2 * quarter] or values)
        lines.append(f"{name}: last / second quarter {growth:.2f}; MiB: {curve}")
    return lines


def _cluster_s(cluster: Cluster) -> float:
    """Return the processor time of the nodes, of ZooKeeper and of this process so far."""
    nodes = [psutil.Process(broker.pid) for broker in cluster.brokers.values()]
    supervisor = nodes[0].parent()
    assert supervisor is not None
    zookeeper = [child for child in supervisor.children() if child.name() == "java"]
    return sum(sum(p.cpu_times()[:2]) for p in [*nodes, *zookeeper, psutil.Process()])


@dataclass(frozen=True, slots=True)
class Round:
    """What one round measured. `cost_us` is processor time of a request."""

    rate: float
    latency_ms: float
    cost_us: float


def ratios(cluster: Cluster, topics: Sequence[str], rounds: int, round_s: float) -> list[str]:
    """Return the rates and latencies with the page open, relative to those without, in turns."""
    measured: dict[tuple[float, bool], list[Round]] = {}

    def measure(is_open: bool) -> None:
        for rate in (RATE, 0):
            with loading(cluster, topics, rate) as load:
                began, used_s = time.monotonic(), _cluster_s(cluster)
                time.sleep(round_s)
                took_s, used_s = time.monotonic() - began, _cluster_s(cluster) - used_s
                done = load.done
            latency_ms = median(load.latencies) * 1000
            result = Round(done / took_s, latency_ms, used_s / max(done, 1) * 1e6)
            measured.setdefault((rate, is_open), []).append(result)

    for number in range(rounds):
        progress(f"ui-open: round {number + 1} of {rounds}")
        measure(is_open=False)
        with opened(cluster):
            measure(is_open=True)
    lines = []
    for rate, name in ((RATE, f"{RATE} requests/s"), (0, "as many as possible")):
        pairs = list(zip(measured[rate, True], measured[rate, False], strict=True))
        closed = spread([shut.rate for _, shut in pairs], "requests/s")
        cost = spread([shut.cost_us for _, shut in pairs], "µs of processor time")
        of_rates = [shown.rate / shut.rate for shown, shut in pairs]
        of_times = [shown.latency_ms / shut.latency_ms for shown, shut in pairs]
        of_costs = [shown.cost_us / shut.cost_us for shown, shut in pairs]
        shares = (
            spread(of_rates, "of the rate", 2),
            spread(of_costs, "of the processor time", 2),
            spread(of_times, "of the median latency", 2),
        )
        lines.append(f"{name}: {closed} without the page, {cost}; with it {', '.join(shares)}")
    return lines


def main() -> None:
    """Measure, and print the report."""
    parser = argparse.ArgumentParser(prog="bench.ui_open", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--round-s", type=float, default=_ROUND_S)
    parser.add_argument(
        "--record", action="store_true", help="keep the results for docs/benchmarks.md"
    )
    options = parser.parse_args()
    if shutil.which("chromium") is None:
        sys.exit("Chromium is missing, so nothing was measured (apt-get install chromium).")
    with Cluster(brokers=3) as cluster:
        controller = cluster.bootstrap_server(cluster.wait_for_controller())
        asyncio.run(create(controller, "page"))
        topics = names("page")[:64]
        lines = []
        if options.rounds:
            lines += ratios(cluster, topics, options.rounds, options.round_s)
            print("\n".join(lines), flush=True)
        if options.minutes:
            over_time = memory_over(options.minutes, cluster, topics)
            print("\n".join(over_time), flush=True)
            lines += over_time
    if options.record:
        record("ui-open", f"python -m bench.ui_open --minutes {options.minutes:g}", lines)


if __name__ == "__main__":
    main()
