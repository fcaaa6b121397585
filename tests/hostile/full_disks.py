"""A disk that becomes full while clients write: nothing that was acknowledged is lost."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.hostile.family import Report, cluster
from tests.hostile.target import bridgehead

DISK_MIB: Final = 700  # three brokers, and ZooKeeper, which allocates 64 MiB for a log
PARTITIONS: Final = 3
FULL_S: Final = 15.0
AGAIN_S: Final = 120.0
ROUNDS: Final = 2


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """Mount a file system of its own; None if that is not permitted."""
    mounted = folder / "disk"
    mounted.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=0700", "tmpfs", str(mounted)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield mounted
    finally:
        subprocess.run(["umount", "-l", str(mounted)], check=True)


class Load:
    """A producer and an admin client that write until they are stopped."""

    def __init__(self, servers: str) -> None:
        settings = {"bootstrap.servers": servers, "log_level": 0}
        self._admin = AdminClient({**settings, "topic.metadata.refresh.interval.ms": 1000})
        self._producer = Producer(
            {**settings, "acks": "all", "delivery.timeout.ms": 10_000, "linger.ms": 5}
        )
        self.records: dict[bytes, tuple[int, int]] = {}  # acknowledged, at partition and offset
        self.topics: set[str] = set()
        self.failed = 0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._produce, self._create)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._producer.flush(15)

    def _delivered(self, error: object, message: Message) -> None:
        value = message.value()
        if error is None and value is not None:
            self.records[value] = (message.partition() or 0, message.offset() or 0)
        else:
            self.failed += 1

    def _produce(self) -> None:
        number = 0
        while not self._stop.is_set():
            try:
                value = b"%d-" % number + b"x" * 2_000
                self._producer.produce(
                    "load", value, partition=number % PARTITIONS, on_delivery=self._delivered
                )
                number += 1
            except BufferError:
                pass
            self._producer.poll(0.005)

    def _create(self) -> None:
        number = 0
        while not self._stop.wait(0.1):
            name = f"topic-{number}"
            number += 1
            try:
                request = self._admin.create_topics([NewTopic(name, 1, 1)], request_timeout=10)
                request[name].result(timeout=15)
                self.topics.add(name)
            except Exception:
                self.failed += 1


def fill_the_disk(folder: Path, report: Report) -> None:
    """Fill the disk of a whole cluster under load, free it, and count what was acknowledged."""
    with small_disk(folder) as disk:
        if disk is None:
            report.figures.append("full disks: not tried, because mounting needs root")
            return
        data = disk / "data"
        options = ("--override", "offsets.topic.num.partitions=1")
        with cluster(data, *options) as document:
            servers = str(document["bootstrap_servers"])
            pids = {broker["id"]: broker["pid"] for broker in document["brokers"]}
            admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
            admin.create_topics([NewTopic("load", PARTITIONS, 3)])["load"].result(timeout=60)
            with Load(servers) as load:
                for number in range(ROUNDS):
                    _fill_once(disk, data, load, report, number)
            alive = {broker for broker, pid in pids.items() if Path(f"/proc/{pid}").exists()}
            report.expect(alive == pids.keys(), f"brokers died: {sorted(pids.keys() - alive)}")
            lost, ends = _lost(servers, load.records)
            report.expect(
                not lost,
                f"{len(lost)} of {len(load.records)} acknowledged records lost; partition, first "
                f"and last offset: {_ranges(lost)}; the logs end at {ends}",
            )
            gone = load.topics - set(admin.list_topics(timeout=30).topics)
            report.expect(not gone, f"{len(gone)} of {len(load.topics)} acknowledged topics lost")
            report.figures.append(
                f"full disks: {len(load.records)} records and {len(load.topics)} topics "
                f"acknowledged, {load.failed} writes failed"
            )
        judged = bridgehead("judge", str(data), check=False)
        violated = re.findall(r"^FAIL.*(?:\n +.*)*", judged.stdout, re.MULTILINE)
        report.expect(judged.returncode in (0, 3), f"the judge: {judged.stderr}{violated}")
        report.figures.append(f"full disks: the judge's exit code is {judged.returncode}")


def _fill_once(disk: Path, data: Path, load: Load, report: Report, number: int) -> None:
    _until(lambda: len(load.records) > 100 * (number + 1) and load.topics, 60)
    before = load.failed
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        end = time.monotonic() + FULL_S
        while time.monotonic() < end:  # What others free meanwhile is taken as well.
            try:
                file.write(bytes(1 << 20))
            except OSError:
                time.sleep(0.01)
    report.expect(load.failed > before, "no write failed on the full disk: the attack is too weak")
    filler.unlink()
    records, topics = len(load.records), len(load.topics)
    here = ("--data-dir", str(data))

    def works_again() -> bool:
        bridgehead("zookeeper", "start", *here, check=False)  # It ends itself on a full disk.
        return len(load.records) > records and len(load.topics) > topics

    began = time.monotonic()
    report.expect(_until(works_again, AGAIN_S), f"no write succeeded within {AGAIN_S:.0f} s")
    report.figures.append(
        f"full disks: writes succeeded {time.monotonic() - began:.1f} s after space was free"
    )


def _until(condition: Any, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _lost(
    servers: str, acknowledged: dict[bytes, tuple[int, int]]
) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the places of acknowledged records that cannot be read, and the ends of the logs."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "log_level": 0,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    partitions = [TopicPartition("load", number, 0) for number in range(PARTITIONS)]
    ends = [consumer.get_watermark_offsets(partition, timeout=30)[1] for partition in partitions]
    consumer.assign(partitions)
    missing, open_partitions = dict(acknowledged), set(range(PARTITIONS))
    deadline = time.monotonic() + 60
    while open_partitions and time.monotonic() < deadline:
        for message in consumer.consume(1_000, timeout=1):
            error = message.error()
            if error is None:
                missing.pop(message.value() or b"", None)
            elif error.code() == KafkaError._PARTITION_EOF:
                open_partitions.discard(message.partition())
    consumer.close()
    assert not open_partitions, f"the partitions {open_partitions} could not be read to their end"
    return sorted(missing.values()), ends


def _ranges(places: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Return each partition with its first and its last offset."""
    return [
        (number, min(offsets), max(offsets))
        for number in range(PARTITIONS)
        if (offsets := [offset for partition, offset in places if partition == number])
    ]
