"""`python -m bench.node_profile [JOB ...]`: where the nodes' processor time goes.

py-spy samples the nodes while a job runs. `STEPS` maps stack frames to the numbered steps of
"One request, file by file" in ARCHITECTURE.md, and to other work such as the request log. A sample
counts for the step of its innermost frame that matches a path in `STEPS`. The operating system
measures the processor time per process. Sampling slows the nodes down, so the shares of the steps
are more reliable than their times.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from bench.bulk_creates import create, names
from bench.failover import all_led_s, fill
from bench.forwarding import measure, two_addresses
from bench.report import progress
from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from bridgehead.raw_client.asynchronous import drive
from bridgehead.raw_client.codec import decode_message, encode_message

_SAMPLES_PER_S: Final = 200
_SMALL, _BULK_ROUNDS, _TOPICS, _CONNECTIONS = 6_000, 8, 200, 64
_TOPIC_RESOURCE: Final = 2
# py-spy counts a thread as active even while it waits in one of these frames. Kazoo's threads, the
# threads of gRPC's compiled code, and idle threads of executors and policies wait in them.
_WAITING: Final = (
    "EpollSelector.select ",
    "_wait (zookeeper_client/",
    "Thread.run ",
    "_worker ",
    "_Worker._work ",
)
_REST: Final = "event loop, sockets, other"

# The first row with a matching path wins.
STEPS: Final[tuple[tuple[str, str], ...]] = (
    ("request log", "broker_proxy/connections/request_log controller/requests/request_log"),
    ("request log", "event_log/text_log cluster_model/request_lines"),
    ("request log", "bridgehead/kafka_wire/generate_json"),
    ("evidence", "event_log/"),
    ("1-3 socket, frames, headers", "broker_proxy/connections/"),
    ("1-3 socket, frames, headers", "bridgehead/kafka_wire/framing bridgehead/kafka_wire/headers"),
    ("4, 5, 14 dispatch", "broker_proxy/requests/ broker_proxy/apis/admin/alter_configs_split"),
    ("4, 5, 14 dispatch", "broker_proxy/client_"),
    ("4, 5, 14 dispatch", "metrics/"),
    ("decode and encode messages", "bridgehead/kafka_wire/"),
    ("6 forwarding", "broker_proxy/forwarding/ envelope/principal_serde"),
    ("7 channel", "envelope/ grpc/ node/assembly/controller_follower"),
    ("8 open Envelope", "controller/envelopes/"),
    ("load the image", "controller/store/load"),
    ("10 plan, split", "controller/store/plan controller/loop/multis"),
    ("10 plan, split", "cluster_model/znodes/ controller/store/outcomes"),
    ("11 commit in ZooKeeper", "controller/store/ zookeeper_client/ kazoo/"),
    ("12 image, publish", "cluster_model/image controller/term/publish"),
    ("12 image, publish", "cluster_model/update_metadata broker_proxy/metadata/cache"),
    ("12 image, publish", "broker_proxy/metadata/applied_metadata"),
    ("12 image, publish", "broker_proxy/metadata/read_consistency"),
    ("13 response", "controller/loop/delayed_responses controller/loop/image_waits"),
    ("13 response", "controller/requests/responses controller/requests/events"),
    ("watches and local reads", "broker_proxy/"),
    ("9 decide", "controller/ cluster_model/"),
)


def step_of(frames: Sequence[str]) -> str:
    """Return the step of a stack, whose first frame is the outermost."""
    for frame in reversed(frames):
        for step, paths in STEPS:
            if any(f"({path}" in frame for path in paths.split()):
                return step
    return _REST


def shares(stacks: Iterable[str]) -> Counter[str]:
    """Return the number of samples of each step, from py-spy's raw format."""
    counts: Counter[str] = Counter()
    for line in stacks:
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        if not frames[-1].startswith(_WAITING):
            counts[step_of(frames)] += int(count)
    return counts


@dataclass(frozen=True, slots=True)
class Profile:
    """What one job cost: operations, and for each process its seconds and its samples."""

    operations: int
    seconds: dict[str, float]  # processor time
    samples: dict[str, Counter[str]]

    def table(self, job: str) -> Iterator[str]:
        """Yield a table in Markdown: microseconds of processor time per operation."""
        names = list(self.seconds)
        yield f"| {job}: us per operation | {' | '.join(names)} |"
        yield "|---|" + "---:|" * len(names)
        scale = {name: self.seconds[name] * 1e6 / self.operations for name in names}
        for step in dict.fromkeys([*(name for name, _ in STEPS), _REST]):
            parts = [self._part(name, step) * scale[name] for name in names]
            if max(parts) > 0.01 * sum(scale.values()):
                yield f"| {step} | {' | '.join(f'{part:,.0f}' if part else '' for part in parts)} |"
        yield f"| **all** | {' | '.join(f'**{scale[name]:,.0f}**' for name in names)} |"

    def _part(self, name: str, step: str) -> float:
        samples = self.samples.get(name, Counter())
        return samples[step] / max(samples.total(), 1)


@contextmanager
def _sampled(pids: Mapping[str, int], into: dict[str, Counter[str]]) -> Iterator[None]:
    """Sample processes while the block runs."""
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / name for name in pids}
        py_spy = str(Path(sys.executable).with_name("py-spy"))
        command = [py_spy, "record", "--format", "raw", "--duration", "600"]
        command += ["--rate", str(_SAMPLES_PER_S)]
        samplers = [
            subprocess.Popen(
                [*command, "--output", files[name], "--pid", str(pid)],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            for name, pid in pids.items()
        ]
        for sampler in samplers:
            assert sampler.stdout is not None
            sampler.stdout.readline()  # printed once py-spy is attached
        try:
            yield
        finally:
            for sampler in samplers:
                sampler.send_signal(signal.SIGINT)
            for sampler in samplers:
                sampler.communicate()
        for name, file in files.items():
            into[name] = shares(file.read_text().splitlines())


def _processes(cluster: Cluster, without: int | None = None) -> dict[str, int]:
    """Return the pids of the nodes by their role; `without`: the broker to leave out."""
    controller = cluster.wait_for_controller()
    others = sorted(set(cluster.brokers) - {controller})
    roles = {"controller": controller, "forwarding broker": others[0], "third broker": others[1]}
    return {role: cluster.brokers[id_].pid for role, id_ in roles.items() if id_ != without}


def _profile(cluster: Cluster, without: int | None, job: Callable[[], int]) -> Profile:
    nodes = _processes(cluster, without)
    supervisor = psutil.Process(next(iter(nodes.values()))).parent()
    assert supervisor is not None
    (java,) = (child.pid for child in supervisor.children() if child.name() == "java")
    samples: dict[str, Counter[str]] = {}
    processes = {**nodes, "ZooKeeper": java, "client": os.getpid()}

    def used() -> dict[str, float]:
        return {name: sum(psutil.Process(pid).cpu_times()[:2]) for name, pid in processes.items()}

    with _sampled(nodes, samples):
        before = used()
        operations = job()
        after = used()
    return Profile(operations, {name: after[name] - before[name] for name in after}, samples)


def _small_creates(cluster: Cluster) -> Profile:
    _, forwarding = two_addresses(cluster)
    measure(forwarding, "warm", connections=_CONNECTIONS, count=1_500)

    def job() -> int:
        measure(forwarding, "small", connections=_CONNECTIONS, count=_SMALL)
        return _SMALL

    return _profile(cluster, None, job)


def _bulk_creates(cluster: Cluster) -> Profile:
    controller, _ = two_addresses(cluster)
    asyncio.run(create(controller, "warm"))

    def job() -> int:
        for round_ in range(_BULK_ROUNDS):
            asyncio.run(create(controller, f"bulk{round_}"))
        return _BULK_ROUNDS * 1_000

    return _profile(cluster, None, job)


def _check_altered(response: bytes) -> None:
    for row in decode_message(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, response).responses:
        if row.error_code != 0:
            raise RuntimeError(f"{row.resource_name}: {row.error_code} {row.error_message}")


def config_changes(topics: Sequence[str], first: int) -> Iterator[bytes]:
    """Yield requests that each set one config of one topic."""
    for number, topic in enumerate(topics):
        config = AlterableConfig("retention.ms", 0, str(1_000_000 + first + number))
        resource = AlterConfigsResource(_TOPIC_RESOURCE, topic, [config])
        request = IncrementalAlterConfigsRequest([resource], validate_only=False)
        yield encode_message(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)


def _config_changes(cluster: Cluster) -> Profile:
    controller, forwarding = two_addresses(cluster)
    asyncio.run(create(controller, "topic"))
    topics = list(itertools.islice(itertools.cycle(names("topic")), _SMALL))

    def change(topics: Sequence[str], first: int) -> int:
        requests = iter(list(config_changes(topics, first)))
        changing = drive(
            forwarding, connections=_CONNECTIONS, requests=requests, check=_check_altered
        )
        return len(asyncio.run(changing))

    change(topics[:1_000], _SMALL)
    return _profile(cluster, None, lambda: change(topics, 0))


def _failover(cluster: Cluster) -> Profile:
    controller, other = two_addresses(cluster)
    asyncio.run(fill(controller, _TOPICS))
    broker_id = cluster.wait_for_controller()

    def job() -> int:
        os.kill(cluster.brokers[broker_id].pid, signal.SIGKILL)
        asyncio.run(all_led_s(other, _TOPICS, broker_id))
        return _TOPICS

    return _profile(cluster, broker_id, job)


JOBS: Final[dict[str, Callable[[Cluster], Profile]]] = {
    "small creates": _small_creates,
    "bulk creates": _bulk_creates,
    "config changes": _config_changes,
    "failover (topics of 100 partitions)": _failover,
}


def main() -> None:
    """Profile the selected jobs, each on its own cluster."""
    parser = argparse.ArgumentParser(prog="bench.node_profile", description="Profiles the nodes.")
    parser.add_argument("jobs", nargs="*", choices=[*JOBS, []], help="default: all jobs")
    for job in parser.parse_args().jobs or JOBS:
        progress(job)
        with Cluster(brokers=3) as cluster:
            profile = JOBS[job](cluster)
        print(*profile.table(job), "", sep="\n", flush=True)


if __name__ == "__main__":
    main()
