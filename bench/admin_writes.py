"""The rates of four admin APIs, from 64 connections to a broker that forwards.

Each request changes one topic or one ACL. In each round the APIs are measured one after another.
CreatePartitions and IncrementalAlterConfigs change topics that exist before the clock starts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from bench.bulk_creates import create, names
from bench.forwarding import new_topics, two_addresses
from bench.node_profile import config_changes
from bench.report import Plan, progress, spread
from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.messages.create_acls import AclCreation, CreateAclsRequest
from bridgehead.kafka_wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from bridgehead.raw_client.asynchronous import drive
from bridgehead.raw_client.codec import decode_message, encode_message

_CONNECTIONS: Final = 64
_AUTHORIZER: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
_TOPIC, _LITERAL, _READ, _ALLOW = 2, 3, 3, 3


def _more_partitions(topics: Sequence[str]) -> Iterator[bytes]:
    for topic in topics:
        request = CreatePartitionsRequest([CreatePartitionsTopic(topic, 2, None)], 60_000, False)
        yield encode_message(ApiKey.CREATE_PARTITIONS, 3, request)


def _acls(topics: Sequence[str]) -> Iterator[bytes]:
    for topic in topics:
        acl = AclCreation(_TOPIC, topic, _LITERAL, "User:alice", "*", _READ, _ALLOW)
        yield encode_message(ApiKey.CREATE_ACLS, 3, CreateAclsRequest([acl]))


def _checked(key: int, version: int) -> Callable[[bytes], None]:
    """Return a function that raises RuntimeError unless a response is a success."""

    def check(response: bytes) -> None:
        message = decode_message(key, version, response)
        rows = getattr(message, "topics", None) or getattr(message, "responses", None)
        for row in rows or message.results:
            if row.error_code != 0:
                raise RuntimeError(f"{ApiKey(key).name}: {row}")

    return check


def _rate(address: str, requests: Iterator[bytes], check: Callable[[bytes], None]) -> float:
    prebuilt = list(requests)
    began = time.perf_counter()
    asyncio.run(drive(address, connections=_CONNECTIONS, requests=iter(prebuilt), check=check))
    return len(prebuilt) / (time.perf_counter() - began)


def run(plan: Plan) -> list[str]:
    """Measure several rounds after a warm-up."""
    rates: dict[str, list[float]] = {}
    with Cluster(brokers=3, properties=_AUTHORIZER) as cluster:
        controller, forwarding = two_addresses(cluster)
        for round_ in range(plan.rounds(4) + 1):
            progress(f"admin writes: round {round_}" + ("" if round_ else " (warm-up)"))
            prefix = f"round{round_}"
            asyncio.run(create(controller, prefix))
            topics = names(prefix)
            jobs = (
                (ApiKey.CREATE_TOPICS, 4, new_topics(f"small{round_}", len(topics))),
                (ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, config_changes(topics, round_)),
                (ApiKey.CREATE_PARTITIONS, 3, _more_partitions(topics)),
                (ApiKey.CREATE_ACLS, 3, _acls(topics)),
            )
            for key, version, requests in jobs:
                rate = _rate(forwarding, requests, _checked(key, version))
                rates.setdefault(key.name, []).append(rate)
    first = rates[ApiKey.CREATE_TOPICS.name]
    ratios = {
        name: [rate / base for rate, base in zip(measured, first, strict=True)][1:]
        for name, measured in rates.items()
    }
    return [
        f"{name}: {spread(measured[1:], 'requests/s')}, "
        f"{spread(ratios[name], 'of the rate of CREATE_TOPICS', 2)}"
        for name, measured in rates.items()
    ]
