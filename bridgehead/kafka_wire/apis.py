"""Every API: its key, names, versions and messages. The one registry.

Versions are those of Kafka 3.9's ZooKeeper broker. What a broker of ours really serves, and
where, is said by `broker_proxy.routing`; only that is advertised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from bridgehead.kafka_wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    controlled_shutdown,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    envelope,
    expire_delegation_token,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leader_and_isr,
    leave_group,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    stop_replica,
    sync_group,
    txn_offset_commit,
    update_features,
    update_metadata,
    write_txn_markers,
)


@dataclass(frozen=True, slots=True)
class ApiSpec:
    """One API. `flexible_from` is None where no version is flexible.

    `forwardable` follows Kafka's ApiKeys (kafka-semantics 1.3); versions up to
    `deprecated_through` are logged as deprecated (kafka-semantics 1.11).
    """

    key: int
    name: str  # CreateTopics
    enum_name: str  # CREATE_TOPICS
    min_version: int
    max_version: int
    flexible_from: int | None
    request: type[Any]
    response: type[Any]
    forwardable: bool = False
    deprecated_through: int = -1

    @property
    def versions(self) -> range:
        """Every version that exists."""
        return range(self.min_version, self.max_version + 1)

    def is_flexible(self, version: int) -> bool:
        """True when `version` has compact types and tagged fields."""
        return self.flexible_from is not None and version >= self.flexible_from

    def request_header_version(self, version: int) -> int:
        """Return 0, 1 or 2. Only ControlledShutdown v0 has the header without a client id."""
        if self.key == 7 and version == 0:
            return 0
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        """Return 0 or 1. ApiVersions is always 0: its reader does not know versions yet."""
        return 1 if self.is_flexible(version) and self.key != 18 else 0


def _spec(
    key: int,
    name: str,
    max_version: int,
    flexible_from: int | None,
    messages: ModuleType,
    *,
    forwardable: bool = False,
    deprecated_through: int = -1,
) -> ApiSpec:
    """Make a row. The module that holds an API's messages has the API's name."""
    return ApiSpec(
        key=key,
        name=name,
        enum_name=messages.__name__.rpartition(".")[2].upper(),
        min_version=0,
        max_version=max_version,
        flexible_from=flexible_from,
        request=getattr(messages, f"{name}Request"),
        response=getattr(messages, f"{name}Response"),
        forwardable=forwardable,
        deprecated_through=deprecated_through,
    )


# Key, name, highest version, first flexible version, messages. Kafka 3.9 begins every API at 0.
API_SPECS: Final[Mapping[int, ApiSpec]] = {
    spec.key: spec
    for spec in (
        _spec(0, "Produce", 11, 9, produce),
        _spec(1, "Fetch", 17, 12, fetch),
        _spec(2, "ListOffsets", 9, 6, list_offsets),
        _spec(3, "Metadata", 12, 9, metadata),
        _spec(4, "LeaderAndIsr", 7, 4, leader_and_isr),
        _spec(5, "StopReplica", 4, 2, stop_replica),
        _spec(6, "UpdateMetadata", 8, 6, update_metadata),
        _spec(7, "ControlledShutdown", 3, 3, controlled_shutdown),
        _spec(8, "OffsetCommit", 9, 8, offset_commit),
        _spec(9, "OffsetFetch", 9, 6, offset_fetch),
        _spec(10, "FindCoordinator", 6, 3, find_coordinator),
        _spec(11, "JoinGroup", 9, 6, join_group),
        _spec(12, "Heartbeat", 4, 4, heartbeat),
        _spec(13, "LeaveGroup", 5, 4, leave_group),
        _spec(14, "SyncGroup", 5, 4, sync_group),
        _spec(15, "DescribeGroups", 5, 5, describe_groups),
        _spec(16, "ListGroups", 5, 3, list_groups),
        _spec(17, "SaslHandshake", 1, None, sasl_handshake),
        _spec(18, "ApiVersions", 4, 3, api_versions),
        _spec(19, "CreateTopics", 7, 5, create_topics, forwardable=True, deprecated_through=1),
        _spec(20, "DeleteTopics", 6, 4, delete_topics, forwardable=True, deprecated_through=0),
        _spec(21, "DeleteRecords", 2, 2, delete_records),
        _spec(22, "InitProducerId", 5, 2, init_producer_id),
        _spec(23, "OffsetForLeaderEpoch", 4, 4, offset_for_leader_epoch),
        _spec(24, "AddPartitionsToTxn", 5, 3, add_partitions_to_txn),
        _spec(25, "AddOffsetsToTxn", 4, 3, add_offsets_to_txn),
        _spec(26, "EndTxn", 4, 3, end_txn),
        _spec(27, "WriteTxnMarkers", 1, 1, write_txn_markers),
        _spec(28, "TxnOffsetCommit", 4, 3, txn_offset_commit),
        _spec(29, "DescribeAcls", 3, 2, describe_acls, deprecated_through=0),
        _spec(30, "CreateAcls", 3, 2, create_acls, forwardable=True, deprecated_through=0),
        _spec(31, "DeleteAcls", 3, 2, delete_acls, forwardable=True, deprecated_through=0),
        _spec(32, "DescribeConfigs", 4, 4, describe_configs, deprecated_through=0),
        _spec(33, "AlterConfigs", 2, 2, alter_configs, forwardable=True),
        _spec(34, "AlterReplicaLogDirs", 2, 2, alter_replica_log_dirs),
        _spec(35, "DescribeLogDirs", 4, 2, describe_log_dirs),
        _spec(36, "SaslAuthenticate", 2, 2, sasl_authenticate),
        _spec(37, "CreatePartitions", 3, 2, create_partitions, forwardable=True),
        _spec(38, "CreateDelegationToken", 3, 2, create_delegation_token, forwardable=True),
        _spec(
            39,
            "RenewDelegationToken",
            2,
            2,
            renew_delegation_token,
            forwardable=True,
            deprecated_through=0,
        ),
        _spec(
            40,
            "ExpireDelegationToken",
            2,
            2,
            expire_delegation_token,
            forwardable=True,
            deprecated_through=0,
        ),
        _spec(41, "DescribeDelegationToken", 3, 2, describe_delegation_token, deprecated_through=0),
        _spec(42, "DeleteGroups", 2, 2, delete_groups),
        _spec(43, "ElectLeaders", 2, 2, elect_leaders, forwardable=True),
        _spec(44, "IncrementalAlterConfigs", 1, 1, incremental_alter_configs, forwardable=True),
        _spec(
            45, "AlterPartitionReassignments", 0, 0, alter_partition_reassignments, forwardable=True
        ),
        _spec(
            46, "ListPartitionReassignments", 0, 0, list_partition_reassignments, forwardable=True
        ),
        _spec(47, "OffsetDelete", 0, None, offset_delete),
        _spec(48, "DescribeClientQuotas", 1, 1, describe_client_quotas),
        _spec(49, "AlterClientQuotas", 1, 1, alter_client_quotas, forwardable=True),
        _spec(50, "DescribeUserScramCredentials", 0, 0, describe_user_scram_credentials),
        _spec(
            51, "AlterUserScramCredentials", 0, 0, alter_user_scram_credentials, forwardable=True
        ),
        _spec(56, "AlterPartition", 3, 0, alter_partition),
        _spec(57, "UpdateFeatures", 1, 0, update_features, forwardable=True),
        _spec(58, "Envelope", 0, 0, envelope),
        _spec(60, "DescribeCluster", 1, 0, describe_cluster),
        _spec(61, "DescribeProducers", 0, 0, describe_producers),
        _spec(65, "DescribeTransactions", 0, 0, describe_transactions),
        _spec(66, "ListTransactions", 1, 0, list_transactions),
        _spec(67, "AllocateProducerIds", 0, 0, allocate_producer_ids, forwardable=True),
        _spec(68, "ConsumerGroupHeartbeat", 0, 0, consumer_group_heartbeat),
        _spec(69, "ConsumerGroupDescribe", 0, 0, consumer_group_describe),
    )
}
