"""The rights that writes require, for A1 (no_unauthorized_effect). Data only.

The table is written independently of the authorizer that is judged. Operations and resource types
are spelled as in the znodes of ACLs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Right = tuple[str, str, str]  # operation, resource type, resource name

CLUSTER: Final = "kafka-cluster"
# By API key: pairs of operation and resource type. A right for any one pair suffices. For `Topic`,
# the element is the topic. For `Config`, an element `2:<topic>` means that topic; any other element
# means the cluster.
RIGHTS: Final[Mapping[int, tuple[tuple[str, str], ...]]] = {
    19: (("Create", "Cluster"), ("Create", "Topic")),  # CreateTopics
    20: (("Delete", "Topic"),),  # DeleteTopics
    30: (("Alter", "Cluster"),),  # CreateAcls
    31: (("Alter", "Cluster"),),  # DeleteAcls
    33: (("AlterConfigs", "Config"),),  # AlterConfigs
    37: (("Alter", "Topic"),),  # CreatePartitions
    43: (("Alter", "Cluster"),),  # ElectLeaders
    44: (("AlterConfigs", "Config"),),  # IncrementalAlterConfigs
    45: (("Alter", "Cluster"),),  # AlterPartitionReassignments
    49: (("AlterConfigs", "Cluster"),),  # AlterClientQuotas
    51: (("Alter", "Cluster"),),  # AlterUserScramCredentials
    56: (("ClusterAction", "Cluster"),),  # AlterPartition
    57: (("Alter", "Cluster"),),  # UpdateFeatures
    67: (("ClusterAction", "Cluster"),),  # AllocateProducerIds
    10001: (("Alter", "Cluster"),),  # AlterTopics
    10003: (("Alter", "Cluster"),),  # AlterAcls, which also requires all other cluster operations
}
# CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken: a client needs no ACL for its
# own tokens.
WITHOUT_ACLS: Final = (38, 39, 40)
WRITES_ACLS: Final = (30, 31, 10003)  # CreateAcls, DeleteAcls, AlterAcls
TOPIC_CONFIG: Final = "2:"
TOPIC_BY_ID: Final = "id:"  # prefix of an element: the request names the topic only by its id


def required_rights(api_key: int, element: str) -> tuple[Right, ...] | None:
    """Return the rights; any one of them suffices. Return () for an API that RIGHTS lacks.

    Return None if the element is not judged: its API needs no ACL, or the request named the topic
    only by its id.
    """
    rights = RIGHTS.get(api_key, ())
    by_id = element.startswith(TOPIC_BY_ID) and rights and rights[0][1] == "Topic"
    if api_key in WITHOUT_ACLS or by_id:
        return None
    return tuple(_right(operation, resource, element) for operation, resource in rights)


def _right(operation: str, resource: str, element: str) -> Right:
    if resource == "Topic":
        return operation, "Topic", element
    if resource == "Config" and element.startswith(TOPIC_CONFIG):
        return operation, "Topic", element.removeprefix(TOPIC_CONFIG)
    return operation, "Cluster", CLUSTER
