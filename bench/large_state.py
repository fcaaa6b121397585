"""Writes the state of a large cluster to ZooKeeper, as a controller would.

`elements` yields topics, ACLs, configs, quotas, credentials and tokens. `write` commits them in
fenced multis and returns the image that a controller would then have in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from cluster_model.delegation_tokens import DelegationToken
from cluster_model.image import MetadataImage
from cluster_model.principal import KafkaPrincipal
from cluster_model.records import (
    AclRecord,
    AssignmentRecord,
    ConfigRecord,
    ConfigResource,
    DeletionMarkerRecord,
    PartitionRecord,
    PartitionState,
    Record,
    TokenRecord,
    TopicRecord,
)
from controller.store.plan import plan_operations
from controller.store.port import Fence
from controller.store.zookeeper import ZooKeeperStore

PARTITIONS: Final = 3
REPLICAS: Final = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
# The number of users per hundred topics. Each user has quotas, a credential and a token.
USERS_PER_100: Final = 10
_OPERATIONS_PER_MULTI: Final = 480
_MULTIS_AT_ONCE: Final = 16
_SCRAM: Final = "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=4096"

# The steps of one element; a step is a sequence of records. Each step is planned on the state that
# the previous step leaves.
Steps = Sequence[Sequence[Record]]


def elements(topics: int) -> Iterator[Steps]:
    """Yield the elements: topics with configs and ACLs, quotas, credentials, tokens, defaults."""
    for number in range(topics):
        yield _topic(number)
        yield _acl(number)
    for number in range(topics * USERS_PER_100 // 100):
        yield from _user(number)
    defaults = {"producer_byte_rate": "1000", "controller_mutation_rate": "10"}
    for kind in ("users", "clients"):
        yield [[ConfigRecord(ConfigResource(kind, "<default>"), defaults)]]
    yield [[ConfigRecord(ConfigResource("brokers", "<default>"), {"log.retention.ms": "1000"})]]
    yield [[ConfigRecord(ConfigResource("brokers", "1"), {"num.io.threads": "4"})]]


def _topic(number: int) -> Steps:
    name = f"topic.{number:06d}" if number % 2 else f"topic_{number:06d}"
    topic_id = number.to_bytes(16, "big", signed=False)[::-1]
    configs = {"retention.ms": str(1_000 + number), "cleanup.policy": "compact"}
    states = [
        PartitionRecord(name, partition, PartitionState(replicas[0], number % 7, replicas, 1, 0))
        for partition, replicas in enumerate(REPLICAS)
    ]
    last: list[Record] = [DeletionMarkerRecord(name)] if number % 1_000 == 999 else []
    if number % 1_000 == 500:
        moved = ((4, *REPLICAS[0]), *REPLICAS[1:])
        last = [AssignmentRecord(name, moved, adding={0: (4,)}, removing={0: (1,)})]
    return [[TopicRecord(name, topic_id, REPLICAS, configs if number % 3 else {})], states, last]


def _acl(number: int) -> Steps:
    """Return the steps that give one resource pattern one to three ACLs.

    A second step changes every fourth pattern, so that the versions of the znodes differ.
    """
    pattern = ResourcePattern(
        "GROUP" if number % 5 == 0 else "TOPIC",
        "PREFIXED" if number % 2 else "LITERAL",
        f"topic.{number:06d}",
    )
    rules = tuple(
        AccessControlEntry(f"User:user-{index}\n", "*", "READ", "ALLOW" if index else "DENY")
        for index in range(1 + number % 3)
    )
    changed: list[Record] = [AclRecord(pattern, rules[:1])] if number % 4 == 0 else []
    return [[AclRecord(pattern, rules)], changed]


def _user(number: int) -> Iterator[Steps]:
    user = f"user-{number}"
    of_user = {
        "SCRAM-SHA-256": _SCRAM,
        "consumer_byte_rate": str(number),
        "request_percentage": "5",
    }
    if number % 2:
        of_user["SCRAM-SHA-512"] = _SCRAM
    yield [[ConfigRecord(ConfigResource("users", user), of_user)]]
    below = ConfigResource("users", f"{user}/clients/app-{number}")
    yield [[ConfigRecord(below, {"controller_mutation_rate": str(number + 1)})]]
    yield [[ConfigRecord(ConfigResource("clients", f"app-{number}"), {"request_percentage": "9"})]]
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    yield [[ConfigRecord(ConfigResource("ips", address), {"connection_creation_rate": "7"})]]
    owner, renewer = KafkaPrincipal("User", user), KafkaPrincipal("User", "renewer")
    token = DelegationToken(f"token-{number:016d}", owner, owner, (renewer,), 1, 2 + number, 3)
    yield [[TokenRecord(token)]]


async def write(store: ZooKeeperStore, fence: Fence, topics: int) -> MetadataImage:
    """Commit the state; return its image."""
    image = MetadataImage(controller_epoch=fence.epoch)
    multis: list[list[bytes]] = [[]]
    for element in elements(topics):
        for records in element:
            operations = [store.encode(operation) for operation in plan_operations(records, image)]
            if len(multis[-1]) + len(operations) > _OPERATIONS_PER_MULTI:
                if len(multis) == _MULTIS_AT_ONCE:
                    await _commit(store, fence, multis)
                    multis = []
                multis.append([])
            multis[-1] += operations
            image = image.replay(records)
    await _commit(store, fence, multis)
    return image


async def _commit(store: ZooKeeperStore, fence: Fence, multis: list[list[bytes]]) -> None:
    _, conflict = await store.commit_pipelined(fence, multis)
    if conflict is not None:
        raise conflict
