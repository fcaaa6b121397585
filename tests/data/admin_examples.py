"""Typed code as users write it with `bridgehead.admin`. mypy checks it against the wheel."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from bridgehead.admin import (
    LATEST,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AdminError,
    AlterConfigOp,
    AlterConfigOpType,
    AsyncAdminClient,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    CreateTopicsFlags,
    DelegationToken,
    ElectionType,
    KafkaError,
    ListTopicsFlags,
    NewPartitions,
    NewTopicWithReplicaAssignments,
    NewTopicWithReplication,
    Node,
    NodeApiVersions,
    OffsetInfo,
    PatternType,
    ResourceType,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
    TopicInfo,
    TopicPartition,
    Try,
    quota_entity,
    read_client_properties,
)


def topics(admin: AdminClient) -> list[str]:
    errors: dict[str, AdminError | None] = admin.create_topics(
        [
            NewTopicWithReplication("orders", 3, 3, {"retention.ms": "1000"}),
            NewTopicWithReplicaAssignments("payments", {0: [1, 2]}),
        ],
        CreateTopicsFlags.VALIDATE_ONLY | CreateTopicsFlags.NONBLOCKING,
    )
    for error in errors.values():
        if isinstance(error, KafkaError) and error.code.name == "POLICY_VIOLATION":
            print(error.message)
    admin.create_topic(NewTopicWithReplication("other"))
    admin.delete_topic("other")
    listed: dict[str, Try[TopicInfo]] = admin.list_topics(ListTopicsFlags.INCLUDE_INTERNAL)
    leader: Node | None = listed["orders"].get().partitions[0].get().leader
    return [str(leader), *admin.delete_topics({"orders", "payments"})]


def brokers(admin: AdminClient) -> dict[Node, Try[NodeApiVersions]]:
    cluster = admin.pinned_to(2).with_timeout(5_000).describe_cluster()
    print(cluster.controller.id if cluster.controller is not None else "none")
    return admin.get_all_broker_versions()


def configs(admin: AdminClient) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ConfigResourceType.TOPIC, "orders")
    change = AlterConfigOp("cleanup.policy", "compact", AlterConfigOpType.APPEND)
    admin.incremental_alter_configs({resource: [change]}, validate_only=True)
    future: Future[dict[str, Try[dict[str, ConfigEntry]]]] = admin.alter_config(
        "topic", {"orders": {"retention.ms": None}}
    )
    return future.result(timeout=10)["orders"].get()


def security(admin: AdminClient) -> DelegationToken:
    binding = AclBinding(
        ResourceType.TOPIC,
        "orders-",
        PatternType.PREFIXED,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    admin.create_acls([binding])
    mine: list[AclBinding] = admin.describe_acls(AclBindingFilter(principal="User:alice"))
    print(mine)
    upsertion = ScramUpsertion("alice", ScramMechanism.SCRAM_SHA_512, "secret")
    admin.alter_user_scram_credentials(
        [upsertion, ScramDeletion("bob", ScramMechanism.SCRAM_SHA_256)]
    )
    admin.alter_client_quotas({quota_entity({"user": "alice"}): {"request_percentage": 50.0}})
    return admin.create_delegation_token(["User:alice"])


def partitions(admin: AdminClient) -> OffsetInfo:
    partition = TopicPartition("orders", 0)
    admin.create_partitions({"orders": NewPartitions(6)})
    admin.elect_leaders(ElectionType.PREFERRED, [partition])
    admin.alter_partition_reassignments({partition: [3, 1], TopicPartition("orders", 1): None})
    return admin.list_offsets({partition: LATEST})[partition].get()


async def asynchronous() -> None:
    async with AsyncAdminClient({"bootstrap.servers": ["127.0.0.1:9092"]}) as admin:
        await asyncio.gather(
            *(admin.create_topic(NewTopicWithReplication(f"t-{n}", 1, 1)) for n in range(3))
        )
        after = await admin.alter_config("topic", {"t-0": {"retention.ms": "1"}})
        print(after["t-0"].get())


def main() -> None:
    properties = read_client_properties("client.properties")
    with AdminClient(properties, token=lambda: "a token") as admin:
        print(topics(admin), brokers(admin), configs(admin), security(admin), partitions(admin))
    asyncio.run(asynchronous())


# mypy must reject each of these mistakes; otherwise the types check nothing.
def mistakes(admin: AdminClient) -> None:
    admin.create_topic("orders")  # type: ignore[arg-type]
    admin.delete_topics(["orders"], CreateTopicsFlags.NONBLOCKING)  # type: ignore[arg-type]
    print(admin.describe_cluster().contoller)  # type: ignore[attr-defined]
    admin.create_topics([], timeout=5)  # type: ignore[call-arg]
    result: str = admin.describe_features()  # type: ignore[assignment]
    print(result)
