"""The two policies in the package, TopicLimits and TopicNaming, without a cluster."""

from __future__ import annotations

from collections.abc import Sequence

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


def create(policy: TopicLimits, state: RequestedTopicState, **existing: TopicState) -> None:
    request = CreateTopicRequest("t", None, state)
    policy.validate_create_topic(request, FixedClusterState(existing))


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
def test_limits_reject_a_topic_that_exceeds_them(
    limit: dict[str, int], state: RequestedTopicState, text: str
) -> None:
    with pytest.raises(PolicyViolationException, match=text):
        create(limits(**limit), state, other=TopicState(2, 1))


def test_limits_accept_a_topic_at_the_limit_and_internal_topics() -> None:
    policy = limits(partitions_max=4, replication_factor_min=2, topics_max=1)
    create(policy, wanted(4, 2))
    create(policy, RequestedTopicState(50, 1, internal=True), other=TopicState(1, 1))


def test_a_topic_above_a_limit_may_change_unless_it_exceeds_the_limit_further() -> None:
    """Configs without a limit can be altered, and a value above its limit can be lowered."""
    policy = limits(partitions_max=4, retention_ms_max=10, cluster_partitions_max=8)
    before = TopicState(8, 3, configs={"retention.ms": "20"})
    alter(policy, wanted(8, 3, retention_ms="20", segment_ms="5"), before)
    alter(policy, wanted(8, 3, retention_ms="15"), before)
    for further in (wanted(9, 3, retention_ms="20"), wanted(8, 3, retention_ms="21")):
        with pytest.raises(PolicyViolationException):
            alter(policy, further, before)


def replicated(*partitions: Sequence[int]) -> RequestedTopicState:
    return RequestedTopicState(
        len(partitions), len(partitions[0]), replicas_assignments=dict(enumerate(partitions))
    )


@pytest.mark.parametrize(
    ("after", "text"),
    [
        (replicated((1, 2), (1,)), "would have 1 replicas; at least 2 are required"),
        (replicated((1, 2), (1, 2, 3)), "would have 3 replicas; the limit is 2"),
    ],
)
def test_limits_of_replicas_apply_to_every_partition(after: RequestedTopicState, text: str) -> None:
    """A reassignment may change partitions other than the first."""
    policy = limits(replication_factor_min=2, replication_factor_max=2)
    alter(policy, replicated((1, 2), (2, 3)), replicated((1, 2), (1, 2)))
    with pytest.raises(PolicyViolationException, match=text):
        alter(policy, after, replicated((1, 2), (1, 2)))


def test_a_topic_with_too_few_replicas_may_get_partitions_with_as_few_replicas() -> None:
    policy = limits(replication_factor_min=2)
    alter(policy, replicated((1,), (2,), (3,)), replicated((1,), (2,)))


def test_cluster_limit_counts_added_partitions() -> None:
    """The partitions that an alteration adds count towards the limit."""
    with pytest.raises(PolicyViolationException, match="The cluster would have 9 partitions"):
        alter(limits(cluster_partitions_max=8), wanted(9), TopicState(8, 1))


def test_cluster_limits_count_topics_accepted_earlier_in_the_same_request() -> None:
    """Existing topics are not counted twice, and internal topics not at all."""
    policy = limits(topics_max=3, cluster_partitions_max=10)
    cluster = FixedClusterState({"old": TopicState(2, 1)})
    earlier = (
        CreateTopicRequest("a", None, wanted(3)),
        CreateTopicRequest("__internal", None, RequestedTopicState(50, 1, internal=True)),
        AlterTopicRequest("old", None, wanted(4)),
    )
    last = CreateTopicRequest("b", None, wanted(3), accepted_before=earlier)
    policy.validate_create_topic(last, cluster)
    too_wide = CreateTopicRequest("b", None, wanted(4), accepted_before=earlier)
    with pytest.raises(PolicyViolationException, match="The cluster would have 11 partitions"):
        policy.validate_create_topic(too_wide, cluster)
    fourth = CreateTopicRequest("c", None, wanted(), accepted_before=(*earlier, last))
    with pytest.raises(PolicyViolationException, match="The cluster would have 4 topics"):
        policy.validate_create_topic(fourth, cluster)
    grown = AlterTopicRequest("old", None, wanted(8), accepted_before=earlier[:1])
    with pytest.raises(PolicyViolationException, match="The cluster would have 11 partitions"):
        policy.validate_alter_topic(grown, cluster)


def test_the_pattern_must_match_the_whole_name() -> None:
    policy = naming(pattern=r"[a-z]+\.[a-z]+")
    cluster = FixedClusterState()
    policy.validate_create_topic(CreateTopicRequest("shop.orders", None, wanted()), cluster)
    with pytest.raises(PolicyViolationException, match="does not match"):
        policy.validate_create_topic(CreateTopicRequest("shop.orders2", None, wanted()), cluster)
    internal = RequestedTopicState(50, 3, internal=True)
    policy.validate_create_topic(CreateTopicRequest("__consumer_offsets", None, internal), cluster)


def test_topic_names_begin_with_the_user_that_creates_them() -> None:
    """A client without authentication cannot create topics."""
    policy, cluster = naming(owner_prefix="true"), FixedClusterState()
    policy.validate_create_topic(CreateTopicRequest("alice.orders", ALICE, wanted()), cluster)
    for topic, principal in (("orders", ALICE), ("alicea.orders", ALICE), ("alice.orders", None)):
        with pytest.raises(PolicyViolationException):
            policy.validate_create_topic(CreateTopicRequest(topic, principal, wanted()), cluster)


def test_protected_topics_and_their_records_are_not_deleted() -> None:
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
def test_invalid_settings_are_rejected(policy: type[TopicLimits], configs: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is not"):
        policy().configure(configs)
