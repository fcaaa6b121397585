"""Values for the fields of random requests: valid, invalid and unusual ones.

Pure. Keys are `Struct.field` or the field's name in the message classes. `$word` stands for one of
the case's own names. There are no values that make a real Kafka hang, or that create a topic that
cannot be deleted (docs/quirks.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NO_ID: Final = "A" * 22
UNKNOWN_ID: Final = "bWlzc2luZyBtaXNzaW5nIA"
# Has a character beyond the basic plane, so that its lengths in UTF-16 and in characters differ.
ODD: Final = "ü☃𝄞"
LONG: Final = "n" * 250
_TOPICS: Final = ("$one", "$one", "$two", "$two", "$missing", "bad name", "", ODD, LONG, ".", "..")
_CONFIGS: Final = (
    "retention.ms",
    "cleanup.policy",
    "cleanup.policy",
    "max.message.bytes",
    "min.insync.replicas",
    "segment.bytes",
    "compression.type",
    "min.cleanable.dirty.ratio",
    "unclean.leader.election.enable",
    "message.timestamp.type",
    "follower.replication.throttled.replicas",
    "remote.storage.enable",
    "local.retention.ms",
    "no.such.config",
    "",
    ODD,
)
_BROKER_CONFIGS: Final = ("log.retention.ms", "num.io.threads", "log.cleaner.threads", "broker.id")
_VALUES: Final = (
    "1000",
    "4",
    "delete",
    "compact,delete",
    "compact",
    "-5",
    "-1",
    "0.5",
    "true",
    "zstd",
    "CreateTime",
    "*",
    "0:1",
    " 1000 ",
    "9" * 20,
    "",
    "x",
    ODD,
    None,
)
_KEYS: Final[tuple[list[str], ...]] = (
    [],
    ["retention.ms"],
    ["cleanup.policy", "cleanup.policy"],
    ["no.such.config", ""],
)
_REPLICAS: Final = ([1], [2], [2, 1], [1, 1])
_PARTITIONS: Final[tuple[list[int], ...]] = ([0], [0, 1], [7], [0, 0], [-1], [])
_USERS: Final = ("alice", "alice", "b", "b", "", ODD, "c,d=e", ".", "..")
_GROUPS: Final = ("g", "another", "", ODD, ".", "a/b")
_ACL_TYPES: Final = (*range(1, 8), 2, 2, 0, 77, -1)
_ACL_PATTERNS: Final = (3, 3, 4, 4, 1, 2, 0, 99)
_ACL_OPERATIONS: Final = (*range(1, 15), 0, 99)
_ACL_PERMISSIONS: Final = (2, 3, 3, 1, 0, 99)
_ACL_NAMES: Final = ("$one", "$two", "$one", "*", "kafka-cluster", "", "a/b", ODD, ".", "..")
_PRINCIPALS: Final = ("User:alice", "User:alice", "User:*", "alice", "", "Group:x", f"User:{ODD}")
_HOSTS: Final = ("*", "127.0.0.1", "", "not an address")

POOLS: Final[Mapping[str, tuple[Any, ...]]] = {
    "timeout_ms": (0, -1, 4000, 4000),
    "CreatableTopic.name": (
        *("$new", "$other", "$new", "$one", "$dotted", "$scored", "bad name", "", ODD, LONG, "."),
        *("__consumer_offsets", "__cluster_metadata"),
    ),
    "CreatableTopic.num_partitions": (-1, -1, 0, 1, 2, 12, -2),
    "CreatableTopic.replication_factor": (-1, -1, 0, 1, 2, 4, -2, 32767),
    "CreatableReplicaAssignment.partition_index": (0, 0, 1, 3, -1),
    "CreatableReplicaAssignment.broker_ids": _REPLICAS,
    "CreatableTopicConfig.name": _CONFIGS,
    "CreatableTopicConfig.value": _VALUES,
    "CreatePartitionsTopic.count": (-1, 0, 1, 2, 3, 12, -5),
    "CreatePartitionsAssignment.broker_ids": (*_REPLICAS, [], [9], [-1], [1, 2, 3]),
    "ReassignablePartition.replicas": ([], [9], [1, 1], [-1], None, [1], [2], [2, 1], [3, 2]),
    "AlterConfigsResource.resource_type": (2, 2, 2, 2, 4, 8, 3, 0, 16, -1),
    "AlterConfigsResource.resource_name": (*_TOPICS, "1", "2", ""),
    "DescribeConfigsResource.resource_type": (2, 2, 2, 4, 8, 3, 0, 16),
    "DescribeConfigsResource.resource_name": (*_TOPICS, "1", "2", "-1"),
    "AlterableConfig.name": (*_CONFIGS, *_BROKER_CONFIGS, "root"),
    "AlterableConfig.value": (*_VALUES, "INFO"),
    "config_operation": (0, 0, 1, 2, 3, 9, -1),
    "configuration_keys": (*_KEYS, ["log.retention.ms", "num.io.threads", "broker.id"], None),
    "partition_index": (0, 0, 1, 7, -1),
    "partition_indexes": _PARTITIONS,
    "ListOffsetsPartition.timestamp": (-1, -2, -3, -4, -5, -6, -9, 0, 10**14, 2**63 - 1),
    "max_num_offsets": (1, 2, 0, -1),
    "current_leader_epoch": (-1, -1, 0, 5, -2),
    "DeleteRecordsPartition.offset": (-1, 0, 1, -2, 2**63 - 1),
    "entity_type": ("user", "user", "client-id", "client-id", "ip", "planet", "", "User"),
    "entity_name": ("alice", "b c", "10.0.0.1", "", "a/b", "<default>", "*", ODD, None, ".", ".."),
    "OpData.key": (
        "consumer_byte_rate",
        "producer_byte_rate",
        "request_percentage",
        "controller_mutation_rate",
        "connection_creation_rate",
        "SCRAM-SHA-256",
        "x",
        "",
    ),
    "OpData.value": (5.0, 0.5, 1e10, 0.0, -1.0, -0.5, 1e300, 2.0**63, 12345678.9),
    "match_type": (0, 0, 1, 2, 9, -1),
    "match": ("alice", "b c", "x", "", "<default>", "a/b", ODD, None, ".", ".."),
    "mechanism": (0, 1, 1, 2, 2, 3, -1),
    "iterations": (4096, 8192, 16384, 1, 20000, -1, 0),
    "salt": ("c2FsdA==", "c2FsdA==", ""),
    "salted_password": ("cGFzc3dvcmQ=", "cGFzc3dvcmQ=", ""),
    "election_type": (0, 1, 5, -1),
    "endpoint_type": (1, 2, 9, 0, -1),
    "feature": ("metadata.version", "x", "", ODD),
    "max_version_level": (-1, 0, 1, 32767),
    "upgrade_type": (0, 1, 2, 3, 9, -1),
    "isolation_level": (0, 1, 5),
    "replica_id": (-1, -1, -2),
    "ScramCredentialUpsertion.name": _USERS,
    "ScramCredentialDeletion.name": _USERS,
    "UserName.name": _USERS,
    "topic_id": (NO_ID, UNKNOWN_ID, "$one_id", "$two_id"),
    "name": _TOPICS,
    "topic": _TOPICS,
    "MetadataRequestTopic.name": (*_TOPICS, "__consumer_offsets", None, None),
    "DeleteTopicState.name": (*_TOPICS, None, None),
    "topic_names": (["$one"], ["$two", "$missing"], ["bad name", "$one", "$one"], ["", ODD], []),
    "partitions": _PARTITIONS,
    "group_id": _GROUPS,
    "groups_names": (["g"], ["g", "another"], ["", "g", "g"], [], [ODD]),
    "DescribeGroupsRequest.groups": (["g"], ["another", "g"], ["", "g", "g"], [], [ODD]),
    "group_ids": (["g"], ["", "g"], []),
    "states_filter": ([], ["Stable"], ["stable", "Empty"], ["no such state"], [""], [ODD]),
    "types_filter": ([], ["classic"], ["Consumer"], ["no such type"], [""]),
    "key": ("g", "t", "", ODD),
    "key_type": (0, 1, 0, 1, 2, 9, -1),
    "coordinator_keys": (["g"], ["t", "g"], ["", "g", "g"], [], [ODD]),
    "transactional_ids": (["t"], ["t", "u"], [""], [], ["t", "t"], [ODD]),
    "state_filters": ([], ["Ongoing"], ["ongoing", "no such state"], [""]),
    "producer_id_filters": ([], [1, 1], [-1]),
    "duration_filter": (-1, 0, 5, -5, 2**63 - 1),
    "AlterReplicaLogDir.path": ("/nowhere", "relative", "", "/"),
    "client_software_name": ("a-client", "a.b", "", "bad name", ODD, "-", "x" * 300),
    "client_software_version": ("1.0", "", "1 0", ODD),
    "SaslHandshakeRequest.mechanism": ("PLAIN", "SCRAM-SHA-256", "", ODD),
    "hmac": ("", "c2FsdA=="),
    "auth_bytes": ("", "c2FsdA=="),
    "principal_type": ("User", "Group", ""),
    "principal_name": ("alice", "", ODD),
    "resource_type": _ACL_TYPES,
    "resource_type_filter": _ACL_TYPES,
    "resource_pattern_type": _ACL_PATTERNS,
    "pattern_type_filter": _ACL_PATTERNS,
    "operation": _ACL_OPERATIONS,
    "permission_type": _ACL_PERMISSIONS,
    "resource_name": _ACL_NAMES,
    "resource_name_filter": (*_ACL_NAMES, None, None),
    "principal": _PRINCIPALS,
    "principal_filter": (*_PRINCIPALS, None, None),
    "host": _HOSTS,
    "host_filter": (*_HOSTS, None, None),
}
