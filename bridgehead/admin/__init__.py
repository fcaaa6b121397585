"""An admin client for Kafka clusters: KIP-117's AdminClient, with KIP-590's changes.

    from bridgehead.admin import AdminClient, NewTopicWithReplication

    with AdminClient({"bootstrap.servers": "127.0.0.1:9092"}) as admin:
        errors = admin.create_topics([NewTopicWithReplication("orders", 3, 3)])
        assert errors["orders"] is None  # success

The calls of `AdminClient` block, except `alter_config`. The calls of `AsyncAdminClient` are
coroutines.

Many calls handle several topics or other resources at once. Most of these calls have a result for
each resource, so one failure does not hide the other results. If the call changes the resources,
the result is an error, or None for success. If the call reads the resources, the result is a `Try`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bridgehead.admin.builders import AlterConfigRequestBuilder, NewTopicsBuilder
from bridgehead.admin.calls.acls import (
    AclAction,
    AclActionType,
    AclBinding,
    AclBindingFilter,
)
from bridgehead.admin.calls.cluster import (
    ApiVersionRange,
    ClusterDescription,
    FeatureMetadata,
    FeatureUpdate,
    NodeApiVersions,
    UpgradeType,
)
from bridgehead.admin.calls.configs import (
    AlterConfigOp,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSynonym,
)
from bridgehead.admin.calls.drafted import TopicAlteration
from bridgehead.admin.calls.groups import (
    CommittedOffset,
    GroupDescription,
    GroupMember,
    GroupOverview,
)
from bridgehead.admin.calls.partitions import ElectionType, NewPartitions, PartitionReassignment
from bridgehead.admin.calls.quotas import (
    ClientQuotaEntity,
    ClientQuotaFilterComponent,
    QuotaMatch,
    quota_entity,
)
from bridgehead.admin.calls.records import (
    EARLIEST,
    LATEST,
    LogDirDescription,
    OffsetInfo,
    ReplicaInfo,
    TopicPartitionReplica,
)
from bridgehead.admin.calls.scram import (
    ScramCredentialInfo,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
)
from bridgehead.admin.calls.tokens import DelegationToken
from bridgehead.admin.calls.topics import (
    CreateTopicsFlags,
    DeleteTopicsFlags,
    ListTopicsFlags,
    NewTopic,
    NewTopicWithReplicaAssignments,
    NewTopicWithReplication,
    TopicInfo,
    TopicPartitionInfo,
)
from bridgehead.admin.client import AdminClient
from bridgehead.admin.config import read_client_properties
from bridgehead.admin.errors import (
    AdminConfigError,
    AdminError,
    AuthenticationError,
    ClientClosedError,
    ConnectionFailedError,
    InvalidCallError,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
)
from bridgehead.admin.results import Node, TopicPartition, Try
from bridgehead.kafka_wire.acl_codes import (
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from bridgehead.kafka_wire.config_codes import AlterConfigOpType, ConfigSource, ConfigType
from bridgehead.kafka_wire.errors import ErrorCode

if TYPE_CHECKING:
    from bridgehead.admin.asynchronous import AsyncAdminClient

__all__ = [
    "EARLIEST",
    "LATEST",
    "AclAction",
    "AclActionType",
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "AdminClient",
    "AdminConfigError",
    "AdminError",
    "AlterConfigOp",
    "AlterConfigOpType",
    "AlterConfigRequestBuilder",
    "ApiVersionRange",
    "AsyncAdminClient",
    "AuthenticationError",
    "ClientClosedError",
    "ClientQuotaEntity",
    "ClientQuotaFilterComponent",
    "ClusterDescription",
    "CommittedOffset",
    "ConfigEntry",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "ConnectionFailedError",
    "CreateTopicsFlags",
    "DelegationToken",
    "DeleteTopicsFlags",
    "ElectionType",
    "ErrorCode",
    "FeatureMetadata",
    "FeatureUpdate",
    "GroupDescription",
    "GroupMember",
    "GroupOverview",
    "InvalidCallError",
    "KafkaError",
    "KafkaTimeoutError",
    "ListTopicsFlags",
    "LogDirDescription",
    "NewPartitions",
    "NewTopic",
    "NewTopicWithReplicaAssignments",
    "NewTopicWithReplication",
    "NewTopicsBuilder",
    "Node",
    "NodeApiVersions",
    "OffsetInfo",
    "PartitionReassignment",
    "PatternType",
    "QuotaMatch",
    "ReplicaInfo",
    "ResourceType",
    "ScramCredentialInfo",
    "ScramDeletion",
    "ScramMechanism",
    "ScramUpsertion",
    "TopicAlteration",
    "TopicInfo",
    "TopicPartition",
    "TopicPartitionInfo",
    "TopicPartitionReplica",
    "Try",
    "UnsupportedVersionError",
    "UpgradeType",
    "quota_entity",
    "read_client_properties",
]


def __getattr__(name: str) -> Any:
    # The module of AsyncAdminClient is imported on first use, because importing asyncio is slow.
    if name != "AsyncAdminClient":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bridgehead.admin.asynchronous import AsyncAdminClient

    return AsyncAdminClient
