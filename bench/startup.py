"""Start-up time of three nodes, what they use when idle, a heal, and imports of admin clients.

Why: test suites start hundreds of clusters and heal one before each test, and scripts import the
admin client at every start.
The resident memory of each node includes the pages that it shares with others. The proportional
memory divides these pages among the processes that share them. A wake-up is a thread that has
waited and continues; the kernel counts them as voluntary context switches.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from bench.report import Plan, median, progress, spread
from bridgehead.cluster import Cluster

_IDLE_S = 10.0
_FIRST_CLUSTER = "import sys; from bench.startup import start_s; print(start_s(sys.argv[1]))"
_ADMIN_CLIENTS = ("bridgehead.admin", "confluent_kafka.admin", "kafka.admin")


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process in MB (10^6 bytes)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"process {pid} has no resident memory")


def proportional_mb(pid: int) -> float:
    """Return the memory of a process in MB, with its share of the pages that others use too."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"process {pid} has no memory")


def _wake_ups(pid: int, threads: str) -> int:
    """Return how often the threads of a process that match `threads` have waited."""
    return sum(
        int(line.split()[1])
        for status in Path(f"/proc/{pid}/task").glob(f"{threads}/status")
        for line in status.read_text().splitlines()
        if line.startswith("voluntary_ctxt_switches:")
    )


def _idle_wake_ups(pids: list[int]) -> list[tuple[float, float]]:
    """Return the wake-ups per second of each process: of its event loop, of all its threads."""

    def counted() -> list[tuple[int, int]]:
        return [(_wake_ups(pid, str(pid)), _wake_ups(pid, "*")) for pid in pids]

    before = counted()
    time.sleep(_IDLE_S)
    return [
        ((loop - loop_before) / _IDLE_S, (every - every_before) / _IDLE_S)
        for (loop, every), (loop_before, every_before) in zip(counted(), before, strict=True)
    ]


def start_s(zookeeper: str) -> float:
    """Start three nodes; return the seconds."""
    began = time.monotonic()
    with Cluster(brokers=3, zookeeper=zookeeper):
        return time.monotonic() - began


def _first_start_s(zookeeper: str) -> float:
    """Start the first three nodes of a new program; return the seconds."""
    command = [sys.executable, "-c", _FIRST_CLUSTER, zookeeper]
    return float(subprocess.run(command, check=True, capture_output=True).stdout)


def _heal_s(cluster: Cluster) -> float:
    """Heal and reset a cluster in which nothing is down; return the seconds."""
    began = time.monotonic()
    cluster.reset()
    return time.monotonic() - began


def _import_ms(module: str) -> float:
    """Return the processor time for importing `module` in a new process, in ms."""
    code = f"import time; b = time.process_time(); import {module}; print(time.process_time() - b)"
    command = [sys.executable, "-c", code]
    return float(subprocess.run(command, check=True, capture_output=True).stdout) * 1000


def run(plan: Plan) -> list[str]:
    """Measure several starts, the memory of idle nodes, heals, and imports in turns."""
    with Cluster(brokers=1) as keeper:
        first, later = [], []
        start_s(f"{keeper.zookeeper_connect}/start")  # starts the launcher
        for round_ in range(plan.rounds(5)):
            progress(f"start-up: round {round_ + 1}")
            first.append(_first_start_s(f"{keeper.zookeeper_connect}/first-{round_}"))
            later.append(start_s(f"{keeper.zookeeper_connect}/later-{round_}"))
    progress(f"memory: idle for {_IDLE_S:.0f} s")
    with Cluster(brokers=3) as cluster:
        time.sleep(_IDLE_S)
        pids = [broker.pid for broker in cluster.brokers.values()]
        sizes = [resident_mb(pid) for pid in pids]
        once = [proportional_mb(pid) for pid in pids]
        controller = cluster.brokers[cluster.wait_for_controller()].pid
        others = [pid for pid in pids if pid != controller]
        active, *idle = _idle_wake_ups([controller, *others])
        heals = [_heal_s(cluster) for _ in range(plan.rounds(5))]
    imports: dict[str, list[float]] = {module: [] for module in _ADMIN_CLIENTS}
    for _ in range(plan.rounds(10)):
        for module, times in imports.items():
            times.append(_import_ms(module))
    ours = median(imports["bridgehead.admin"])
    return [
        f"ready after {spread(first, 's', 2)} on a running ZooKeeper, supervisor included",
        f"from the third cluster of a program on after {spread(later, 's', 2)}, "
        f"{median(later) / median(first):.2f} of the time",
        f"three idle nodes: {sum(sizes):.0f} MB resident {json.dumps([round(mb) for mb in sizes])}",
        f"heal and reset with nothing down: {spread(heals, 's', 2)}",
        f"proportional memory: {sum(once):.0f} MB {json.dumps([round(mb) for mb in once])}",
        f"wake-ups per second of an idle node's event loop: {median([n for n, _ in idle]):.1f} "
        f"(all threads, also gRPC's: {median([n for _, n in idle]):.0f}); "
        f"of the active controller: {active[0]:.1f} ({active[1]:.0f})",
        *(
            f"import {module}: {spread(times, 'ms')}, {median(times) / ours:.2f} times ours"
            for module, times in imports.items()
        ),
    ]
