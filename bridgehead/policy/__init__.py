"""Interfaces for an operator's own topic policies: KIP-108, KIP-133 and KIP-201.

Write a class, put its folder on PYTHONPATH, and set its dotted path in the brokers' properties:
`topic.management.policy.class.name=my_company.policies.TopicRules`. The controller calls it for
every admin write of a topic, whichever broker received the request; the leader of a partition calls
it before it deletes records. A policy rejects a request by raising `PolicyViolationException`; the
client gets its text, with error code 44.

All values can be built by hand, to test a policy without a cluster.
"""

from bridgehead.policy.alter_config import AlterConfigPolicy, ConfigResource
from bridgehead.policy.create_topic import CreateTopicPolicy
from bridgehead.policy.topic_management import (
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    FixedClusterState,
    KafkaPrincipal,
    RequestedTopicState,
    TopicManagementPolicy,
    TopicState,
)
from bridgehead.policy.violation import PolicyViolationException

__all__ = [
    "AlterConfigPolicy",
    "AlterTopicRequest",
    "ClusterState",
    "ConfigResource",
    "CreateTopicPolicy",
    "CreateTopicRequest",
    "DeleteRecordsRequest",
    "DeleteTopicRequest",
    "FixedClusterState",
    "KafkaPrincipal",
    "PolicyViolationException",
    "RequestedTopicState",
    "TopicManagementPolicy",
    "TopicState",
]
