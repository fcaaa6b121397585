"""CreateTopics of 1,000 topics in one request, compared with raw fenced multis of the same znodes.

Why: metadata cannot be written faster than ZooKeeper accepts it. The aim is 0.6 of the speed of raw
multis that are sent at once. They create the same znodes under other names, in kazoo transactions
that are encoded beforehand. Each transaction has one check of /controller_epoch and at most 499
creates. This is the least work that a ZooKeeper client can do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, ClassVar

from kazoo.client import KazooClient
from kazoo.protocol.serialization import CheckVersion, Create, Transaction
from kazoo.security import OPEN_ACL_UNSAFE

from bench.forwarding import two_addresses
from bench.report import Plan, median, progress, spread
from bridgehead.cluster import Cluster
from bridgehead.raw_client.asynchronous import AsyncConnection
from bridgehead.raw_client.codec import create_topics, decode_message

_TOPICS = 1_000
_OPERATIONS = 500
_VERSION = 7


class EncodedTransaction:
    """A kazoo transaction that is encoded beforehand."""

    type: ClassVar[int] = Transaction.type

    def __init__(self, operations: Sequence[Any]) -> None:
        self._transaction = Transaction(list(operations))
        self._encoded = bytes(self._transaction.serialize())

    def serialize(self) -> bytes:
        """Return the prepared bytes."""
        return self._encoded

    def deserialize(self, data: bytes, offset: int) -> Any:
        """Return the results of the operations."""
        return self._transaction.deserialize(data, offset)


def names(prefix: str) -> list[str]:
    """Return 1,000 topic names."""
    return [f"{prefix}-{number:04d}" for number in range(_TOPICS)]


async def create(address: str, prefix: str) -> float:
    """Create 1,000 topics in one request; return the time in seconds."""
    request = create_topics(
        names(prefix), partitions=1, replication_factor=3, version=_VERSION, timeout_ms=60_000
    )
    connection = await AsyncConnection.open(address)
    began = time.perf_counter()
    response = await connection.exchange(request)
    took = time.perf_counter() - began
    connection.close()
    codes = [topic.error_code for topic in decode_message(19, _VERSION, response).topics]
    if codes != [0] * _TOPICS:
        raise RuntimeError(f"{prefix}: {sum(code != 0 for code in codes)} topics failed")
    return took


def znodes_of(zookeeper: KazooClient, topics: Sequence[str]) -> list[tuple[str, bytes]]:
    """Return path and content of all znodes of topics, parents first."""
    znodes = []
    for topic in topics:
        root = f"/brokers/topics/{topic}"
        paths = [f"/config/topics/{topic}", root, f"{root}/partitions"]
        paths += [f"{root}/partitions/0", f"{root}/partitions/0/state"]
        responses = [(path, zookeeper.get_async(path)) for path in paths]
        znodes += [(path, response.get()[0]) for path, response in responses]
    return znodes


def prepare(
    zookeeper: KazooClient, znodes: Sequence[tuple[str, bytes]], old: str, new: str
) -> list[EncodedTransaction]:
    """Return multis that create `znodes` with `new` instead of `old` (of equal length) in paths."""
    epoch_version = zookeeper.get("/controller_epoch")[1].version
    check = CheckVersion("/controller_epoch", epoch_version)
    size = _OPERATIONS - 1
    creates = [
        Create(path.replace(old, new), data or b"", OPEN_ACL_UNSAFE, 0) for path, data in znodes
    ]
    return [
        EncodedTransaction([check, *creates[at : at + size]]) for at in range(0, len(creates), size)
    ]


def commit(
    zookeeper: KazooClient, transactions: Sequence[EncodedTransaction], *, at_once: bool
) -> float:
    """Send multis, `at_once` or each after the previous reply; return the time in seconds."""
    began = time.perf_counter()
    pending = []
    for transaction in transactions:
        pending.append(zookeeper.handler.async_result())
        # The public `Transaction.commit` would encode within the measured time.
        zookeeper._call(transaction, pending[-1])
        if not at_once:
            pending[-1].wait()
    results = [response.get() for response in pending]
    took = time.perf_counter() - began
    if any(isinstance(result, Exception) for multi in results for result in multi):
        raise RuntimeError("a raw multi failed")
    return took


def _measure(cluster: Cluster, zookeeper: KazooClient, rounds: int) -> dict[str, list[float]]:
    """Alternate our request and both ways of sending raw multis; discard the first round."""
    controller, _ = two_addresses(cluster)
    asyncio.run(create(controller, "model"))
    znodes = znodes_of(zookeeper, names("model"))
    taken: dict[str, list[float]] = {"ours": [], "at once": [], "in turn": []}
    for round_ in range(rounds + 1):
        progress(f"bulk creates: round {round_}" + ("" if round_ else " (warm-up)"))
        at_once = prepare(zookeeper, znodes, "model", f"raw{round_:02d}")
        in_turn = prepare(zookeeper, znodes, "model", f"one{round_:02d}")
        taken["ours"].append(asyncio.run(create(controller, f"our{round_:02d}")))
        taken["at once"].append(commit(zookeeper, at_once, at_once=True))
        taken["in turn"].append(commit(zookeeper, in_turn, at_once=False))
        for prefix in ("raw", "one"):
            stored = znodes_of(zookeeper, names(f"{prefix}{round_:02d}"))
            if len(stored) != len(znodes):
                raise RuntimeError("the raw multis created more or fewer znodes than our request")
    return {side: seconds[1:] for side, seconds in taken.items()}


def _ratios(rounds: int, *, stores_records: bool) -> list[str]:
    """Compare our request with both ways of sending raw multis, on one cluster."""
    properties = {"bridgehead.data.plane": str(stores_records).lower()}
    with Cluster(brokers=3, properties=properties) as cluster:
        zookeeper = KazooClient(hosts=cluster.zookeeper_connect, timeout=30)
        zookeeper.start()
        try:
            taken = _measure(cluster, zookeeper, rounds)
        finally:
            zookeeper.stop()
            zookeeper.close()
    ours = median(taken["ours"])
    side_of = "with records" if stores_records else "without records"
    lines = [
        f"{side_of}: {_TOPICS / ours:.0f} topics/s; {_milliseconds(taken['ours'])} per request"
    ]
    for side in ("at once", "in turn"):
        raw = median(taken[side])
        lines.append(
            f"{side_of}: {raw / ours:.2f} of the speed of raw fenced multis sent {side} "
            f"({_TOPICS / raw:.0f} topics/s; {_milliseconds(taken[side])})"
        )
    return lines


def run(plan: Plan) -> list[str]:
    """Report the time of our request, compared with both ways of sending raw multis."""
    rounds = plan.rounds(8)
    return _ratios(rounds, stores_records=True) + _ratios(rounds, stores_records=False)


def _milliseconds(seconds: Sequence[float]) -> str:
    return spread([number * 1e3 for number in seconds], "ms")
