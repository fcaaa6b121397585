"""The two policies that come with the package: limits and naming, asked without a cluster."""

from __future__ import annotations

import pytest

from bridgehead.policy import (
    AlterTopicRequest,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    FixedClusterState,
    KafkaPrincipal,
    PolicyViolationException,
    RequestedTopicState,
    TopicState,
)
from bridgehead.policy.limits import TopicLimits
from bridgehead.policy.naming import TopicNaming

ALICE = KafkaPrincipal("User", "alice")


def limits(**values: int) -> TopicLimits:
    policy = TopicLimits()
    policy.configure(
        {f"bridgehead.policy.limits.{n.replace('_', '.')}": str(v) for n, v in values.items()}
    )
    return policy


def naming(**values: str) -> TopicNaming:
    policy = TopicNaming()
    policy.configure(
        {f"bridgehead.policy.naming.{n.replace('_', '.')}": v for n, v in values.items()}
    )
    return policy


def wanted(partitions: int = 1, factor: int = 1, **configs: str) -> RequestedTopicState:
    return RequestedTopicState(
        partitions, factor, configs={n.replace("_", "."): v for n, v in configs.items()}
    )


def create(policy: TopicLimits, state: RequestedTopicState, **there: TopicState) -> None:
    request = CreateTopicRequest("t", None, state)
    policy.validate_create_topic(request, FixedClusterState(there))


def alter(policy: TopicLimits, state: RequestedTopicState, before: TopicState) -> None:
    policy.validate_alter_topic(
        AlterTopicRequest("t", None, state), FixedClusterState({"t": before})
    )


@pytest.mark.parametrize(
    ("limit", "state", "text"),
    [
        ({"partitions_max": 4}, wanted(5), "Topic 't' would have 5 partitions; the limit is 4."),
        (
            {"replication_factor_min": 2},
            wanted(1, 1),
            "Topic 't' would have 1 replicas; at least 2 are required.",
        ),
        ({"replication_factor_max": 2}, wanted(1, 3), "Topic 't' would have 3 replicas; the limit"),
        ({"retention_ms_max": 10}, wanted(retention_ms="11"), "keep its records for 11 ms"),
        ({"retention_ms_max": 10}, wanted(retention_ms="-1"), "keep its records for -1 ms"),
        ({"topics_max": 1}, wanted(), "The cluster would have 2 topics; the limit is 1."),
        ({"cluster_partitions_max": 3}, wanted(2), "The cluster would have 4 partitions"),
    ],
)
def test_a_limit_refuses_the_topic_that_exceeds_it(
    limit: dict[str, int], state: RequestedTopicState, text: str
) -> None:
    """And says by how much."""
    with pytest.raises(PolicyViolationException, match=text):
        create(limits(**limit), state, other=TopicState(2, 1))


def test_what_is_within_every_limit_passes_and_internal_topics_always_do() -> None:
    """A limit that is met exactly is met."""
    policy = limits(partitions_max=4, replication_factor_min=2, topics_max=1)
    create(policy, wanted(4, 2))
    create(policy, RequestedTopicState(50, 1, internal=True), other=TopicState(1, 1))


def test_what_was_over_a_limit_before_may_stay_so_but_not_go_further() -> None:
    """A topic older than the policy can still have its configs altered."""
    policy = limits(partitions_max=4, retention_ms_max=10, cluster_partitions_max=8)
    before = TopicState(8, 3, configs={"retention.ms": "20"})
    alter(policy, wanted(8, 3, retention_ms="20", segment_ms="5"), before)
    alter(policy, wanted(8, 3, retention_ms="15"), before)
    for further in (wanted(9, 3, retention_ms="20"), wanted(8, 3, retention_ms="21")):
        with pytest.raises(PolicyViolationException):
            alter(policy, further, before)


def test_the_cluster_limit_counts_what_is_added() -> None:
    """Growing a topic takes from the same allowance as creating one."""
    with pytest.raises(PolicyViolationException, match="The cluster would have 9 partitions"):
        alter(limits(cluster_partitions_max=8), wanted(9), TopicState(8, 1))


def test_names_match_the_pattern_whole() -> None:
    """A name that only contains a match is refused."""
    policy = naming(pattern=r"[a-z]+\.[a-z]+")
    cluster = FixedClusterState()
    policy.validate_create_topic(CreateTopicRequest("shop.orders", None, wanted()), cluster)
    with pytest.raises(PolicyViolationException, match="does not match"):
        policy.validate_create_topic(CreateTopicRequest("shop.orders2", None, wanted()), cluster)
    internal = RequestedTopicState(50, 3, internal=True)
    policy.validate_create_topic(CreateTopicRequest("__consumer_offsets", None, internal), cluster)


def test_a_name_begins_with_its_creator() -> None:
    """Somebody who is not authenticated cannot create at all."""
    policy, cluster = naming(owner_prefix="true"), FixedClusterState()
    policy.validate_create_topic(CreateTopicRequest("alice.orders", ALICE, wanted()), cluster)
    for topic, who in (("orders", ALICE), ("alicea.orders", ALICE), ("alice.orders", None)):
        with pytest.raises(PolicyViolationException):
            policy.validate_create_topic(CreateTopicRequest(topic, who, wanted()), cluster)


def test_a_protected_topic_keeps_itself_and_its_records() -> None:
    """Others go."""
    policy, cluster = naming(protected=r"billing\..*"), FixedClusterState()
    policy.validate_delete_topic(DeleteTopicRequest("orders", ALICE), cluster)
    policy.validate_delete_records(DeleteRecordsRequest("orders", ALICE, {0: 5}), cluster)
    with pytest.raises(PolicyViolationException, match="protected"):
        policy.validate_delete_topic(DeleteTopicRequest("billing.x", ALICE), cluster)
    with pytest.raises(PolicyViolationException, match="protected"):
        policy.validate_delete_records(DeleteRecordsRequest("billing.x", ALICE, {0: 5}), cluster)


@pytest.mark.parametrize(
    ("policy", "configs"),
    [
        (TopicLimits, {"bridgehead.policy.limits.partitons.max": "4"}),
        (TopicLimits, {"bridgehead.policy.limits.partitions.max": "many"}),
        (TopicNaming, {"bridgehead.policy.naming.patern": "x"}),
        (TopicNaming, {"bridgehead.policy.naming.pattern": "("}),
    ],
)
def test_a_setting_that_cannot_be_obeyed_is_refused(
    policy: type[TopicLimits], configs: dict[str, str]
) -> None:
    """A limit that is misspelt would bind nobody."""
    with pytest.raises(ValueError, match=r"is not|is no"):
        policy().configure(configs)
