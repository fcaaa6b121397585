"""Interfaces for an operator's own topic policies: KIP-108, KIP-133 and KIP-201.

Write a class, put its folder on PYTHONPATH, and set its dotted path in the brokers' properties:
`topic.management.policy.class.name=my_company.policies.TopicRules`. These nodes call the policy:

- The active controller calls it before a topic is created, changed or deleted. This includes
  requests that other brokers forward.
- A broker below the bridge release calls it before the broker itself writes configs.
- The broker that leads a partition calls it before records of the partition are deleted.

To reject a request, a policy raises `PolicyViolationException`. The client gets error code 44 and
the text of the exception.

The argument types can be constructed directly, so a test of a policy needs no cluster.
"""

from bridgehead.policy.interfaces import (
    AlterConfigPolicy,
    ConfigResource,
    CreateTopicPolicy,
    PolicyViolationException,
)
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
