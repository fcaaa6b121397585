"""The authorization matrix: each request, the right it needs, and the expected results."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from bridgehead.authorizer import Operation, ResourceType
from bridgehead.raw_client.codec import topic_body

TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED, TXN_DENIED, USER_DENIED = 29, 30, 31, 53, 65
TOKENS_NOT_ALLOWED: Final = 64
DENIALS: Final = frozenset({29, 30, 31, 53, 65, 64})
NOT_DENIED: Final = "not denied"

Observed = Any


def codes(response: Any, _name: str) -> Observed:
    """Return every error code in order. A code that is not a denial is replaced by NOT_DENIED."""
    return [code if code in DENIALS else NOT_DENIED for code in _codes(response)]


def _codes(value: Any) -> list[int]:
    result: list[int] = []
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(key, str) and key.lower() == "errorcode":
            result.append(inner)
        elif isinstance(inner, dict | list):
            result += _codes(inner)
    return result


def is_shown(response: Any, name: str) -> Observed:
    """Return True if the response names the resource."""
    return name in json.dumps(response)


@dataclass(frozen=True, slots=True)
class Row:
    """One request, and what `observe` must return for its response.

    It must return `denied` for clients without the right, and `allowed` for clients with the right.
    """

    label: str
    key: int
    version: int
    operation: Operation
    resource_type: ResourceType
    body: Any
    denied: Observed
    allowed: Observed = field(default_factory=lambda: [NOT_DENIED])
    observe: Callable[[Any, str], Observed] = codes
    topic: bool = False  # the test creates the topic first
    special: dict[str, Observed] = field(default_factory=dict)  # results that differ, by persona

    def filled(self, name: str, broker: int) -> Any:
        """Return the body with its placeholders replaced."""
        text = json.dumps(self.body).replace("{name}", name).replace("{broker}", str(broker))
        return json.loads(text)


def on_topic(
    label: str, key: int, version: int, operation: Operation, body: Any, **more: Any
) -> Row:
    fields: dict[str, Any] = {"denied": [TOPIC_DENIED], "topic": True} | more
    return Row(label, key, version, operation, "TOPIC", body, **fields)


def on_cluster(
    label: str, key: int, version: int, operation: Operation, body: Any, **more: Any
) -> Row:
    more = {"denied": [CLUSTER_DENIED]} | more
    return Row(label, key, version, operation, "CLUSTER", body, **more)


def on_group(
    label: str, key: int, version: int, operation: Operation, body: Any, **more: Any
) -> Row:
    more = {"denied": [GROUP_DENIED]} | more
    return Row(label, key, version, operation, "GROUP", body, **more)


def configs(kind: int, name: str, key: str, value: str, *, incremental: bool) -> Any:
    config: dict[str, Any] = {"name": key, "value": value}
    if incremental:
        config["configOperation"] = 0
    resource = {"resourceType": kind, "resourceName": name, "configs": [config]}
    return {"resources": [resource], "validateOnly": True}


def acl_filter(name: str) -> dict[str, Any]:
    return {
        "resourceTypeFilter": 3,
        "resourceNameFilter": name,
        "patternTypeFilter": 3,
        "principalFilter": None,
        "hostFilter": None,
        "operation": 1,
        "permissionType": 1,
    }


# The right that each API requires, one row per request (docs/kafka/acls.md#rights-per-api).

_ACL: Final = {
    "resourceType": 3,
    "resourceName": "{name}",
    "resourcePatternType": 3,
    "principal": "User:x",
    "host": "*",
    "operation": 3,
    "permissionType": 3,
}
_NO_TOPIC_ID: Final = "A" * 22
_CREATE: Final = topic_body("{name}")
_METADATA: Final = {"allowAutoTopicCreation": False, "includeTopicAuthorizedOperations": False}
_SCRAM: Final = {"deletions": [{"name": "{name}", "mechanism": 1}], "upsertions": []}
_TOKEN_FOR_ANOTHER: Final = {
    "ownerPrincipalType": "User",
    "ownerPrincipalName": "{name}",
    "renewers": [],
    "maxLifetimeMs": -1,
}
_UNKNOWN_TOKEN: Final = {"hmac": "AAAA", "renewPeriodMs": -1}


ROWS: Final[tuple[Row, ...]] = (
    on_topic(
        "ListOffsets",
        2,
        7,
        "DESCRIBE",
        {
            "replicaId": -1,
            "isolationLevel": 0,
            "topics": [
                {
                    "name": "{name}",
                    "partitions": [
                        {"partitionIndex": 0, "currentLeaderEpoch": -1, "timestamp": -1}
                    ],
                }
            ],
        },
    ),
    on_topic(
        "Metadata by name",
        3,
        12,
        "DESCRIBE",
        {**_METADATA, "topics": [{"topicId": _NO_TOPIC_ID, "name": "{name}"}]},
        allowed=[NOT_DENIED, NOT_DENIED],
    ),
    on_topic(
        "Metadata of all topics",
        3,
        12,
        "DESCRIBE",
        {**_METADATA, "topics": None},
        observe=is_shown,
        denied=False,
        allowed=True,
    ),
    on_group(
        "OffsetFetch",
        9,
        7,
        "DESCRIBE",
        {"groupId": "{name}", "topics": None, "requireStable": False},
    ),
    on_group(
        "DescribeGroups",
        15,
        5,
        "DESCRIBE",
        {"groups": ["{name}"], "includeAuthorizedOperations": False},
    ),
    on_topic(
        "CreateTopics",
        19,
        4,
        "CREATE",
        {"topics": [_CREATE], "timeoutMs": 10000, "validateOnly": False},
        topic=False,
    ),
    on_cluster(
        "CreateTopics on the cluster",
        19,
        4,
        "CREATE",
        {"topics": [_CREATE], "timeoutMs": 10000, "validateOnly": False},
        denied=[TOPIC_DENIED],
    ),
    on_topic("DeleteTopics", 20, 3, "DELETE", {"topicNames": ["{name}"], "timeoutMs": 10000}),
    on_topic(
        "DeleteTopics of a missing topic",
        20,
        3,
        "DELETE",
        {"topicNames": ["{name}"], "timeoutMs": 10000},
        topic=False,
    ),
    on_topic(
        "DeleteRecords",
        21,
        1,
        "DELETE",
        {
            "topics": [{"name": "{name}", "partitions": [{"partitionIndex": 0, "offset": 0}]}],
            "timeoutMs": 1000,
        },
    ),
    on_cluster("DescribeAcls", 29, 2, "DESCRIBE", acl_filter("{name}")),
    on_cluster("CreateAcls", 30, 2, "ALTER", {"creations": [_ACL]}),
    on_cluster("DeleteAcls", 31, 2, "ALTER", {"filters": [acl_filter("{name}")]}),
    on_topic(
        "DescribeConfigs of a topic",
        32,
        1,
        "DESCRIBE_CONFIGS",
        {
            "resources": [
                {"resourceType": 2, "resourceName": "{name}", "configurationKeys": ["flush.ms"]}
            ],
            "includeSynonyms": False,
        },
    ),
    on_cluster(
        "DescribeConfigs of a broker",
        32,
        1,
        "DESCRIBE_CONFIGS",
        {
            "resources": [
                {"resourceType": 4, "resourceName": "{broker}", "configurationKeys": ["x"]}
            ],
            "includeSynonyms": False,
        },
    ),
    on_topic(
        "AlterConfigs of a topic",
        33,
        1,
        "ALTER_CONFIGS",
        configs(2, "{name}", "flush.ms", "1", incremental=False),
    ),
    on_cluster(
        "AlterConfigs of all brokers",
        33,
        1,
        "ALTER_CONFIGS",
        configs(4, "", "log.cleaner.threads", "1", incremental=False),
    ),
    on_topic(
        "IncrementalAlterConfigs of a topic",
        44,
        1,
        "ALTER_CONFIGS",
        configs(2, "{name}", "flush.ms", "1", incremental=True),
    ),
    on_cluster(
        "IncrementalAlterConfigs of a broker",
        44,
        1,
        "ALTER_CONFIGS",
        configs(4, "{broker}", "log.cleaner.threads", "1", incremental=True),
    ),
    on_cluster(
        "IncrementalAlterConfigs of a logger",
        44,
        1,
        "ALTER_CONFIGS",
        configs(8, "{broker}", "kafka", "INFO", incremental=True),
    ),
    on_cluster(
        "AlterReplicaLogDirs",
        34,
        2,
        "ALTER",
        {"dirs": [{"path": "/x", "topics": [{"name": "{name}", "partitions": [0]}]}]},
    ),
    on_cluster(
        "DescribeLogDirs", 35, 3, "DESCRIBE", {"topics": []}, allowed=[NOT_DENIED, NOT_DENIED]
    ),
    on_topic(
        "CreatePartitions",
        37,
        1,
        "ALTER",
        {
            "topics": [{"name": "{name}", "count": 2, "assignments": None}],
            "timeoutMs": 10000,
            "validateOnly": True,
        },
    ),
    Row(
        "CreateDelegationToken for another owner",
        38,
        3,
        "CREATE_TOKENS",
        "USER",
        _TOKEN_FOR_ANOTHER,
        denied=[USER_DENIED],
        special={"anonymous": [TOKENS_NOT_ALLOWED], "token": [TOKENS_NOT_ALLOWED]},
    ),
    Row(
        "RenewDelegationToken of an unknown token",
        39,
        2,
        "DESCRIBE",
        "USER",
        _UNKNOWN_TOKEN,
        denied=[NOT_DENIED],
        special={"anonymous": [TOKENS_NOT_ALLOWED], "token": [TOKENS_NOT_ALLOWED]},
    ),
    Row(
        "ExpireDelegationToken of an unknown token",
        40,
        2,
        "DESCRIBE",
        "USER",
        {"hmac": "AAAA", "expiryTimePeriodMs": -1},
        denied=[NOT_DENIED],
        special={"anonymous": [TOKENS_NOT_ALLOWED], "token": [TOKENS_NOT_ALLOWED]},
    ),
    Row(
        "DescribeDelegationToken of another owner",
        41,
        2,
        "DESCRIBE_TOKENS",
        "USER",
        {"owners": [{"principalType": "User", "principalName": "owner"}]},
        observe=lambda response, _: (response["errorCode"], len(response["tokens"])),
        denied=(0, 0),
        allowed=(0, 1),
        special={"anonymous": (TOKENS_NOT_ALLOWED, 0), "token": (TOKENS_NOT_ALLOWED, 0)},
    ),
    on_group("DeleteGroups", 42, 2, "DELETE", {"groupsNames": ["{name}"]}),
    on_cluster(
        "ElectLeaders",
        43,
        2,
        "ALTER",
        {
            "electionType": 0,
            "topicPartitions": [{"topic": "{name}", "partitions": [0]}],
            "timeoutMs": 1000,
        },
        denied=[CLUSTER_DENIED, CLUSTER_DENIED],
        allowed=[NOT_DENIED, NOT_DENIED],
    ),
    on_cluster(
        "AlterPartitionReassignments",
        45,
        0,
        "ALTER",
        {
            "timeoutMs": 1000,
            "topics": [{"name": "{name}", "partitions": [{"partitionIndex": 0, "replicas": [1]}]}],
        },
        denied=[CLUSTER_DENIED, CLUSTER_DENIED],
        allowed=[NOT_DENIED, NOT_DENIED],
    ),
    on_cluster(
        "ListPartitionReassignments", 46, 0, "DESCRIBE", {"timeoutMs": 1000, "topics": None}
    ),
    on_group("OffsetDelete", 47, 0, "DELETE", {"groupId": "{name}", "topics": []}),
    on_cluster(
        "DescribeClientQuotas", 48, 1, "DESCRIBE_CONFIGS", {"components": [], "strict": False}
    ),
    on_cluster(
        "AlterClientQuotas",
        49,
        1,
        "ALTER_CONFIGS",
        {
            "entries": [
                {
                    "entity": [{"entityType": "user", "entityName": "{name}"}],
                    "ops": [{"key": "producer_byte_rate", "value": 9.0, "remove": False}],
                }
            ],
            "validateOnly": True,
        },
    ),
    on_cluster(
        "DescribeUserScramCredentials",
        50,
        0,
        "DESCRIBE",
        {"users": [{"name": "{name}"}]},
        denied=[CLUSTER_DENIED, CLUSTER_DENIED],
        allowed=[NOT_DENIED, NOT_DENIED],
    ),
    on_cluster("AlterUserScramCredentials", 51, 0, "ALTER", _SCRAM),
    on_cluster(
        "UpdateFeatures",
        57,
        1,
        "ALTER",
        {"timeoutMs": 1000, "featureUpdates": [], "validateOnly": False},
    ),
    on_cluster(
        "DescribeCluster",
        60,
        0,
        "DESCRIBE",
        {"includeClusterAuthorizedOperations": True},
        observe=lambda response, _: response["clusterAuthorizedOperations"] != 0,
        denied=False,
        allowed=True,
    ),
    on_topic(
        "DescribeProducers",
        61,
        0,
        "READ",
        {"topics": [{"name": "{name}", "partitionIndexes": [0]}]},
    ),
    Row(
        "DescribeTransactions",
        65,
        0,
        "DESCRIBE",
        "TRANSACTIONAL_ID",
        {"transactionalIds": ["{name}"]},
        denied=[TXN_DENIED],
    ),
    # These rows are last, because their requests create internal topics.
    on_group("FindCoordinator of a group", 10, 3, "DESCRIBE", {"key": "{name}", "keyType": 0}),
    Row(
        "FindCoordinator of a transaction",
        10,
        3,
        "DESCRIBE",
        "TRANSACTIONAL_ID",
        {"key": "{name}", "keyType": 1},
        denied=[TXN_DENIED],
    ),
)
