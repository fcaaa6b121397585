"""The rules alone, and the rules as a cluster's clients see them."""

import pytest
from bridgehead.policy import (
    CreateTopicRequest,
    FixedClusterState,
    PolicyViolationException,
    RequestedTopicState,
)
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from team_topics import TeamTopics

TEAMS = {"team.topics.teams": "billing,search"}


@pytest.mark.parametrize("name", ["orders", "sales.orders", "billing."])
def test_name_without_a_team_is_rejected(name):
    policy = TeamTopics()
    policy.configure(TEAMS)
    state = RequestedTopicState(num_partitions=1, replication_factor=1)
    with pytest.raises(PolicyViolationException, match="billing, search"):
        policy.validate_create_topic(CreateTopicRequest(name, None, state), FixedClusterState())


@pytest.mark.bridgehead(brokers=1, policies=[TeamTopics], properties=TEAMS)
def test_clients_get_the_text_of_the_policy(bridgehead_cluster):
    admin = AdminClient({"bootstrap.servers": bridgehead_cluster.bootstrap_servers})
    admin.create_topics([NewTopic("billing.orders", 1, 1)])["billing.orders"].result()
    with pytest.raises(KafkaException, match=r"POLICY_VIOLATION.*begin the name with a team"):
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result()
    # This client sends a version of DeleteTopics that has no POLICY_VIOLATION and no text.
    with pytest.raises(KafkaException, match="UNKNOWN"):
        admin.delete_topics(["billing.orders"])["billing.orders"].result()
    assert "billing.orders" in admin.list_topics().topics
