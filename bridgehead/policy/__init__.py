"""Policies of an operator's own, for topics: KIP-108, KIP-133 and KIP-201.

Write a class, put its folder on PYTHONPATH, and name it by its dotted path in the brokers'
properties: `topic.management.policy.class.name=my_company.policies.TopicRules`. The controller
asks it about every admin write that concerns topics, whichever broker the client asked; the leader
of a partition asks it before records are deleted. A policy refuses by raising
`PolicyViolationException`; its text is what the client reads, with error code 44.

Everything here can be built by hand, so that a policy is tested without a cluster.
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
