"""Which calls go to the controller: every write (KIP-590 §Protocol Bumps)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bridgehead.admin.calls import (
    acls,
    configs,
    drafted,
    partitions,
    quotas,
    scram,
    tokens,
    topics,
)
from bridgehead.admin.results import TopicPartition
from bridgehead.kafka_wire.acl_codes import (
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from bridgehead.kafka_wire.apis import DRAFTED_SPECS
from tests.unit.bridgehead.admin.world import World

ACL = acls.AclBinding(
    ResourceType.TOPIC,
    "orders",
    PatternType.LITERAL,
    "User:alice",
    "*",
    AclOperation.READ,
    AclPermissionType.ALLOW,
)
TOPIC = configs.ConfigResource(configs.ConfigResourceType.TOPIC, "orders")
PARTITION = TopicPartition("orders", 1)
Call = Callable[[], Any]
# The eight APIs that KIP-590 bumps, and the version that only the controller handles.
BUMPED: dict[str, tuple[Call, int]] = {
    "AlterConfigs": (lambda: configs.alter_configs({TOPIC: {"a": "1"}}), 2),
    "IncrementalAlterConfigs": (lambda: configs.incremental_alter_configs({TOPIC: []}), 2),
    "CreateAcls": (lambda: acls.create_acls([ACL]), 3),
    "DeleteAcls": (lambda: acls.delete_acls([acls.EVERY_ACL]), 3),
    "AlterClientQuotas": (
        lambda: quotas.alter_client_quotas({quotas.quota_entity({"user": "a"}): {}}),
        1,
    ),
    "CreateDelegationToken": (lambda: tokens.create_delegation_token(), 3),
    "RenewDelegationToken": (lambda: tokens.renew_delegation_token(b"hmac"), 3),
    "ExpireDelegationToken": (lambda: tokens.expire_delegation_token(b"hmac"), 3),
}
OTHERS: dict[str, Call] = {
    "CreateTopics": lambda: topics.create_topics([topics.NewTopicWithReplication("a", 1, 1)]),
    "DeleteTopics": lambda: topics.delete_topics(["a"]),
    "CreatePartitions": lambda: partitions.create_partitions({"a": partitions.NewPartitions(2)}),
    "ElectLeaders": lambda: partitions.elect_leaders(partitions.ElectionType.PREFERRED),
    "AlterPartitionReassignments": lambda: partitions.alter_partition_reassignments(
        {PARTITION: [2, 3]}
    ),
    "AlterUserScramCredentials": lambda: scram.alter_user_scram_credentials(
        [scram.ScramDeletion("a", scram.ScramMechanism.SCRAM_SHA_256)]
    ),
}
ONLY_DRAFTED: dict[str, Call] = {
    "AlterTopics": lambda: drafted.alter_topics([drafted.TopicAlteration("a", 2)]),
    "AlterAcls": lambda: acls.alter_acls({(ResourceType.TOPIC, "a"): []}),
}
CALLS = {name: call for name, (call, _) in BUMPED.items()} | OTHERS


def sent(call: Call, dialect: str) -> list[str]:
    """Return broker, API and version of each request for the call. Broker 3 is the controller."""
    world = World()
    world.controller = 3
    for broker in world.brokers.values():
        broker.dialect = dialect
    number = world.start(call())  # nobody answers
    world.core.cancel(number)
    return [
        line.split(" ", 1)[1]
        for line in world.new_lines()
        if not any(word in line for word in ("connected", "ApiVersions", "Metadata"))
    ]


@pytest.mark.parametrize("name", CALLS)
def test_each_write_goes_to_the_controller(name: str) -> None:
    """On a drafted listener the eight APIs have the version that KIP-590 adds."""
    (shipped,) = sent(CALLS[name], "shipped")
    assert shipped.startswith(f"3 {name} v")
    (on_drafted,) = sent(CALLS[name], "drafted")
    version = BUMPED[name][1] if name in BUMPED else int(shipped.rpartition("v")[2])
    newest = next(spec for spec in DRAFTED_SPECS.values() if spec.name == name).max_version
    assert on_drafted == f"3 {name} v{version}"
    assert version == newest


@pytest.mark.parametrize("name", ONLY_DRAFTED)
def test_the_writes_of_kip_4_go_to_the_controller(name: str) -> None:
    assert sent(ONLY_DRAFTED[name], "drafted") == [f"3 {name} v0"]
