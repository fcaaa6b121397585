"""Requests whose memory must be given back: sessions, groups, member ids, client ids, dry runs.

Each kind is sent for the same time twice. Caches fill in the first half, so only what a broker
grows by in the second half is a finding. `HOSTILE_MEMORY_MINUTES` changes the whole time.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from tests.hostile.family import Report, cluster, node_logs, resident_bytes
from tests.hostile.wire import (
    TAGS,
    Wire,
    array,
    blob,
    ctext,
    flat,
    head,
    i8,
    i16,
    i32,
    i64,
    joined,
    text,
)

MINUTES: Final = float(os.environ.get("HOSTILE_MEMORY_MINUTES", "10"))
CONNECTIONS: Final = 6
TOPIC: Final = "memory"
PARTITIONS: Final = 20
# A leak of 500 bytes for each of a thousand requests a second shows after half a minute.
GROWTH_BYTES_MAX: Final = 16 * 1024 * 1024


class Abuse(NamedTuple):
    """`payload` returns a request that the broker has never seen. `calls`: for each connection."""

    name: str
    payload: Callable[[], bytes]
    calls: int = 1_000_000


def _fetch_session() -> bytes:
    """A full Fetch that opens a session, which is never used again."""
    partitions = [flat(i32(n), i64(0), i64(0), i32(1)) for n in range(PARTITIONS)]
    topic = flat(text(TOPIC), array(*partitions))
    limits = flat(i32(-1), i32(0), i32(0), i32(1000), i8(0), i32(0), i32(0))
    return joined([*head(1, 7), *limits, *array(topic), *array()])


def _join_group() -> bytes:
    """A member without an id: the broker gives it one, and it never joins (KIP-394)."""
    protocol = [*text("range"), *blob(secrets.token_bytes(200))]
    times = flat(i32(6_000), i32(6_000))
    body = flat(text(secrets.token_hex(20)), times, text(""), text("consumer"), array(protocol))
    return joined([*head(11, 4), *body])


def _heartbeat() -> bytes:
    return joined([*head(12, 0), *text(secrets.token_hex(20)), i32(3), *text("nobody")])


def _client_id() -> bytes:
    """Metadata of no topic, with a client id that nobody has had."""
    name = text("client-" + secrets.token_hex(40))
    return joined([i16(3), i16(1), i32(7), *name, *array()])


def _software() -> bytes:
    """ApiVersions with the name and version of another client each time (KIP-511)."""
    names = flat(ctext("s" + secrets.token_hex(20)), ctext("v" + secrets.token_hex(20)), TAGS)
    return joined([*head(18, 3, flexible=True), *names])


def _missing_topics() -> bytes:
    names = [text(secrets.token_hex(30)) for _ in range(20)]
    return joined([*head(3, 4), *array(*names), i8(0)])


def _dry_run() -> bytes:
    """A creation that is forwarded, decided and not written."""
    topic = flat(text(secrets.token_hex(30)), i32(3), i16(1), array(), array())
    return joined([*head(19, 4), *array(topic), i32(5_000), i8(1)])


def _missing_group() -> bytes:
    return joined([*head(15, 0), *array(text(secrets.token_hex(30)))])


def _producer_id() -> bytes:
    return joined([*head(22, 0), *text(None), i32(1_000)])


ABUSES: Final = (
    Abuse("fetch sessions", _fetch_session),
    Abuse("member ids", _join_group),
    Abuse("heartbeats of no member", _heartbeat),
    Abuse("client ids", _client_id),
    Abuse("names of client software", _software, calls=1),
    Abuse("topics that do not exist", _missing_topics),
    Abuse("dry runs", _dry_run),
    Abuse("groups that do not exist", _missing_group),
    Abuse("producer ids", _producer_id),
)


def _send(address: str, abuse: Abuse, until: float) -> tuple[int, int]:
    """Send requests; return how many got a response, and how many did not."""
    responses = closed = 0
    while time.monotonic() < until:
        with Wire(address) as wire:
            for _ in range(abuse.calls):
                if not isinstance(wire.call(abuse.payload()), bytes):
                    closed += 1
                    break
                responses += 1
                if time.monotonic() > until:
                    break
    return responses, closed


def _half(addresses: list[str], abuse: Abuse, seconds: float) -> tuple[int, int]:
    until = time.monotonic() + seconds
    sums: list[tuple[int, int]] = []
    threads = [
        threading.Thread(
            target=lambda n=n: sums.append(_send(addresses[n % len(addresses)], abuse, until))
        )
        for n in range(CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(responses for responses, _ in sums), sum(closed for _, closed in sums)


def _halves(
    addresses: list[str], pids: list[int], abuse: Abuse, seconds: float
) -> Iterator[tuple[int, int, int]]:
    """Yield for each half: responses, requests without one, and the growth of a broker in bytes."""
    for _ in range(2):
        before = [resident_bytes(pid) for pid in pids]
        responses, closed = _half(addresses, abuse, seconds)
        after = [resident_bytes(pid) for pid in pids]
        yield responses, closed, max(a - b for a, b in zip(after, before, strict=True))


def fill_the_memory(folder: Path, report: Report) -> None:
    """Send each kind of request for two equal times, and measure the brokers."""
    data = folder / "data"
    with cluster(data, "--override", "auto.create.topics.enable=false") as document:
        admin = AdminClient({"bootstrap.servers": document["bootstrap_servers"], "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(timeout=60)
        addresses = [next(iter(node["listeners"].values())) for node in document["brokers"]]
        pids = [node["pid"] for node in document["brokers"]]
        seconds = MINUTES * 60 / len(ABUSES) / 2
        for abuse in ABUSES:
            first, second = _halves(addresses, pids, abuse, seconds)
            report.expect(not first[1] + second[1], f"{abuse.name}: a request got no response")
            grown = second[2]
            report.expect(
                grown < GROWTH_BYTES_MAX,
                f"{abuse.name}: {second[0]} requests, and a broker grew by {grown / 1e6:.0f} MB",
            )
            report.figures.append(
                f"memory: {abuse.name}: {first[0] + second[0]:,} requests, a broker grew by "
                f"{first[2] / 1e6:.1f} MB, then by {grown / 1e6:.1f} MB"
            )
        dead = [pid for pid in pids if not Path(f"/proc/{pid}").exists()]
        report.expect(not dead, f"{len(dead)} brokers died")
        _, word, trace = node_logs(data).partition("Traceback")
        report.expect(not word, f"a traceback: {trace[:800]}")
