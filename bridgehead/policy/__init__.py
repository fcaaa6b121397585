"""Interfaces for an operator's own topic policies: KIP-108, KIP-133 and KIP-201.

Write a class, put its folder on PYTHONPATH, and set its dotted path in the brokers' properties:
`topic.management.policy.class.name=my_company.policies.TopicRules`. The active controller calls the
policy before a topic is created, changed or deleted, also for requests that other brokers forward.
Below the bridge release, a broker also calls it for the configs that it writes itself. The broker
that leads a partition calls it before the partition's records are deleted. A policy rejects a
request by raising `PolicyViolationException`; the client gets the text of the exception, with error
code 44.

The argument types can be constructed directly, so a test of a policy needs no cluster.
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
