"""Names of APIs in the report."""

from __future__ import annotations

from typing import Final

# The names of APIs with consecutive keys, by the first of these keys.
_NAMES: Final = {
    -1: "commit Produce Fetch ListOffsets Metadata LeaderAndIsr StopReplica UpdateMetadata "
    "ControlledShutdown OffsetCommit OffsetFetch FindCoordinator JoinGroup Heartbeat "
    "LeaveGroup SyncGroup DescribeGroups ListGroups SaslHandshake ApiVersions CreateTopics "
    "DeleteTopics DeleteRecords InitProducerId OffsetForLeaderEpoch AddPartitionsToTxn "
    "AddOffsetsToTxn EndTxn WriteTxnMarkers TxnOffsetCommit DescribeAcls CreateAcls "
    "DeleteAcls DescribeConfigs AlterConfigs AlterReplicaLogDirs DescribeLogDirs "
    "SaslAuthenticate CreatePartitions CreateDelegationToken RenewDelegationToken "
    "ExpireDelegationToken DescribeDelegationToken DeleteGroups ElectLeaders "
    "IncrementalAlterConfigs AlterPartitionReassignments ListPartitionReassignments "
    "OffsetDelete DescribeClientQuotas AlterClientQuotas DescribeUserScramCredentials "
    "AlterUserScramCredentials",
    56: "AlterPartition UpdateFeatures Envelope",
    60: "DescribeCluster DescribeProducers",
    65: "DescribeTransactions ListTransactions AllocateProducerIds ConsumerGroupHeartbeat "
    "ConsumerGroupDescribe",
}
APIS: Final = {
    key: name for first, names in _NAMES.items() for key, name in enumerate(names.split(), first)
}


def api_name(api_key: int) -> str:
    """Return an API's name, or its number if it is unknown."""
    return APIS.get(api_key, f"API {api_key}")
