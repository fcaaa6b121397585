"""Sources of rehearsals: a ZooKeeper with given znodes, and large metadata of every kind."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from bridgehead.cluster.java import find_java
from bridgehead.cluster.ports import Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from cluster_model.znodes.operations import Create
from rehearse.copying import copy_tree, session_to
from rehearse.znodes import Znode, ZnodeTree

# Every operation that Kafka 3.9 knows for a resource type.
_OPERATIONS = {
    "Topic": (
        *("Read", "Write", "Create", "Delete", "Alter", "Describe"),
        *("DescribeConfigs", "AlterConfigs", "All"),
    ),
    "Group": ("Read", "Delete", "Describe", "All"),
    "Cluster": (
        *("Create", "ClusterAction", "DescribeConfigs", "AlterConfigs"),
        *("IdempotentWrite", "Alter", "Describe", "All"),
    ),
    "TransactionalId": ("Write", "Describe", "All"),
    "DelegationToken": ("Describe", "All"),
    "User": ("CreateTokens", "DescribeTokens", "All"),
}
_KINDS = [
    (kind, root)
    for kind in _OPERATIONS
    for root in ("/kafka-acl", "/kafka-acl-extended/prefixed")
    if kind != "Cluster" or root == "/kafka-acl"  # there is only one cluster
]


@contextlib.contextmanager
def source_of(tree: ZnodeTree, folder: Path) -> Iterator[str]:
    """Run a ZooKeeper with a tree's znodes; yield its address. Ephemeral znodes become so, too."""
    with Ports() as ports:
        server = EmbeddedZooKeeper(folder, (ports.choose(),), java=find_java(), heap_mib=512)
        with server, _registrations(tree, server.connect):
            yield server.connect


@contextlib.contextmanager
def _registrations(tree: ZnodeTree, connect: str) -> Iterator[None]:
    """Hold the session of the ephemeral znodes in a thread, whose loop keeps it alive."""
    asyncio.run(copy_tree(tree, connect, with_migration=True))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    ready, stop = threading.Event(), asyncio.Event()

    async def hold() -> None:
        async with session_to(connect) as session:
            creations = [
                session.encode(Create(path, znode.data, ephemeral=True))
                for path, znode in tree.znodes.items()
                if znode.ephemeral
            ]
            await session.multi(creations)
            ready.set()
            await stop.wait()

    held = asyncio.run_coroutine_threadsafe(hold(), loop)
    try:
        assert ready.wait(60)
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        held.result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def large(topics: int, partitions: int, base: ZnodeTree) -> ZnodeTree:
    """Return `base` with many topics, ACLs of every kind, quotas of every entity, SCRAM, tokens."""
    znodes = dict(base.znodes)
    for path, data in itertools.chain(
        _topics(topics, partitions), _security(topics), _quotas(topics)
    ):
        parts = path.split("/")[1:-1]
        for depth in range(len(parts)):
            znodes.setdefault("/" + "/".join(parts[: depth + 1]), Znode())
        znodes[path] = Znode(None if data is None else orjson.dumps(data))
    return ZnodeTree(znodes)


def _uuid(name: str) -> str:
    digest = hashlib.sha256(name.encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _topics(topics: int, partitions: int) -> Iterator[tuple[str, Any]]:
    for number in range(topics):
        name = f"topic.{number:05}"
        replicas = {
            str(index): [1 + (number + index + step) % 3 for step in range(3)]
            for index in range(partitions)
        }
        content = {"removing_replicas": {}, "partitions": replicas, "topic_id": _uuid(name)}
        yield f"/brokers/topics/{name}", {**content, "adding_replicas": {}, "version": 3}
        for index, ids in replicas.items():
            state = {
                "controller_epoch": 6,
                "leader": ids[0],
                "version": 1,
                "leader_epoch": number % 9,
            }
            yield f"/brokers/topics/{name}/partitions/{index}/state", {**state, "isr": ids}
        configs = {"retention.ms": str(60_000 + number)} if number % 2 else {}
        yield f"/config/topics/{name}", {"version": 1, "config": configs}


def _security(topics: int) -> Iterator[tuple[str, Any]]:
    for number in range(max(2 * len(_KINDS), topics // 10)):
        kind, root = _KINDS[number % len(_KINDS)]
        name = "kafka-cluster" if kind == "Cluster" else f"acl-{number}"
        entries = [
            {
                "principal": f"User:user {number}",
                "permissionType": "Deny" if number % 3 else "Allow",
                "operation": operation,
                "host": "*" if number % 2 else f"10.0.0.{number % 250}",
            }
            for operation in _OPERATIONS[kind]
        ]
        yield f"{root}/{kind}/{name}", {"version": 1, "acls": entries}
    yield (
        "/kafka-acl/Topic/*",
        {
            "version": 1,
            "acls": [
                {
                    "principal": "User:*",
                    "permissionType": "Allow",
                    "operation": "Describe",
                    "host": "*",
                }
            ],
        },
    )
    for number in range(max(3, topics // 100)):
        token = {
            "version": 3,
            "owner": f"User%3Aowner%20{number}",
            "tokenRequester": "User%3Aalice",
            "renewers": [f"User%3Ar{number}", "User%3Abob"],
            "issueTimestamp": 1_764_000_000_000 + number,
            "maxTimestamp": 4_764_000_000_000,
            "expiryTimestamp": 4_664_000_000_000,
            "tokenId": _uuid(f"token {number}"),
        }
        yield f"/delegation_token/tokens/{token['tokenId']}", token


def _quotas(topics: int) -> Iterator[tuple[str, Any]]:
    """Yield quotas of every entity: a user, a client, both or an ip, each by name or default."""
    rates = _config({"producer_byte_rate": "1048576", "request_percentage": "12.5"})
    for number in range(max(3, topics // 10)):
        user = f"/config/users/user-{number}%40x"
        yield user, _config({**rates["config"], **_scram(number)})
        yield f"{user}/clients/app%2F{number}", rates
        yield f"{user}/clients/<default>", _config({"consumer_byte_rate": f"{number + 1024}"})
        yield f"/config/clients/app%2F{number}", _config({"request_percentage": f"{number + 0.25}"})
        ip = f"/config/ips/10.7.{number // 250}.{number % 250}"
        yield ip, _config({"connection_creation_rate": f"{number + 1}"})
    yield "/config/users/<default>", _config({"consumer_byte_rate": "7340032"})
    yield "/config/users/<default>/clients/<default>", _config({"consumer_byte_rate": "99"})
    yield "/config/users/<default>/clients/one", _config({"controller_mutation_rate": "7.25"})
    yield "/config/clients/<default>", _config({"request_percentage": "150"})
    yield "/config/ips/<default>", _config({"connection_creation_rate": "88"})
    yield "/config/brokers/<default>", _config({"log.cleaner.threads": "2"})


def _config(configs: dict[str, str]) -> dict[str, Any]:
    return {"version": 1, "config": configs}


def _scram(number: int) -> dict[str, str]:
    return {
        name: _credential(number, size, 4096 + number)
        for name, size in (("SCRAM-SHA-256", 32), ("SCRAM-SHA-512", 64))
    }


def _credential(number: int, size: int, iterations: int) -> str:
    parts = {}
    for name, length in (("salt", 16), ("stored_key", size), ("server_key", size)):
        digest = hashlib.sha512(f"{name} {number} {size}".encode()).digest()[:length]
        parts[name] = base64.b64encode(digest).decode()
    text = ",".join(f"{name}={value}" for name, value in parts.items())
    return f"{text},iterations={iterations}"
