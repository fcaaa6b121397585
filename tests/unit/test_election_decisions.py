"""ElectLeaders and UpdateFeatures where recorded answers do not reach."""

from __future__ import annotations

import random
from typing import Any

import pytest
from immutables import Map

from bridgehead.kafka_wire.codec import encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from bridgehead.kafka_wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from cluster_model.image import BrokerRegistration, MetadataImage
from cluster_model.records import (
    NO_LEADER,
    DeletionMarkerRecord,
    PartitionRecord,
    PartitionState,
    TopicRecord,
)
from controller.apis.base import RequestContext, WaitFor
from controller.apis.elect_leaders import ElectLeaders
from controller.apis.update_features import UpdateFeatures
from tests.unit.authorizing import Rule
from tests.unit.request_contexts import a_context

PREFERRED, UNCLEAN = 0, 1
ELECT, FEATURES = ElectLeaders(), UpdateFeatures()


def context(version: int, authorize: Rule | bool = True) -> RequestContext:
    return a_context(43, version, authorize, random=random.Random(3))


def cluster(*states: tuple[int, tuple[int, ...]], live: tuple[int, ...] = (1, 2, 3)) -> Any:
    """Topic `t`, its partitions on brokers 1, 2 and 3, each with (leader, ISR)."""
    brokers = Map({i: BrokerRegistration(i, i, ()) for i in live})
    image = MetadataImage(controller_epoch=5, brokers=brokers)
    records: list[Any] = [TopicRecord("t", b"7" * 16, ((1, 2, 3),) * len(states), {})]
    for partition, (leader, isr) in enumerate(states):
        records.append(PartitionRecord("t", partition, PartitionState(leader, 4, isr, 5, 6)))
    return image.replay(records)


def elect(image: MetadataImage, kind: int, *partitions: int, everything: bool = False) -> Any:
    """Return (outcomes by partition, image afterwards)."""
    asked = None if everything else [TopicPartitions("t", list(partitions))]
    request = ElectLeadersRequest(kind, asked, 1_000)
    decision = ELECT.decide(context(2), request, image, {})
    outcomes = {d.element: d.outcome for d in decision.elements}
    assert decision.wait.what is WaitFor.ELECTION
    assert set(decision.wait.topics) == set(outcomes)
    after = image.replay([r for d in decision.elements for r in d.records])
    answer = ELECT.answer(context(2), request, outcomes, after, frozenset())
    results = {
        p.partition_id: (p.error_code, p.error_message)
        for topic in answer.replica_election_results
        for p in topic.partition_result
    }
    return results, after


def test_a_preferred_election_gives_the_partition_back_to_its_first_replica() -> None:
    """The ISR stays; the leader epoch steps."""
    results, after = elect(cluster((2, (1, 2))), PREFERRED, 0)
    assert results == {0: (ErrorCode.NONE, None)}
    assert after.topics["t"].states[0] == PartitionState(1, 5, (1, 2), 5, 7)


@pytest.mark.parametrize(("live", "isr"), [((2, 3), (2, 3)), ((1, 2, 3), (2, 3))])
def test_a_preferred_leader_must_live_and_be_in_sync(live: Any, isr: Any) -> None:
    """80 with Kafka's text, and nothing is written."""
    before = cluster((2, isr), live=live)
    results, after = elect(before, PREFERRED, 0)
    assert results[0] == (
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        "Failed to elect leader for partition t-0 "
        "under strategy PreferredReplicaPartitionLeaderElectionStrategy",
    )
    assert after == before


def test_an_unclean_election_takes_any_living_replica() -> None:
    """Only the new leader is in sync with itself; a partition that is led is left alone."""
    before = cluster((NO_LEADER, (1,)), (2, (2, 3)), live=(2, 3))
    results, after = elect(before, UNCLEAN, 0, 1)
    assert results[0] == (ErrorCode.NONE, None)
    assert results[1][0] == ErrorCode.ELECTION_NOT_NEEDED
    assert after.topics["t"].states[0] == PartitionState(2, 5, (2,), 5, 7, True)


def test_an_unclean_election_without_a_living_replica_fails() -> None:
    """83."""
    results, _ = elect(cluster((NO_LEADER, (1,)), live=(9,)), UNCLEAN, 0)
    assert results[0][0] == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_of_all_partitions_only_those_that_need_an_election_are_answered() -> None:
    """Partitions of null ask for all of them."""
    image = cluster((1, (1, 2)), (2, (1, 2)), (2, (2,)))
    results, _ = elect(image, PREFERRED, everything=True)
    assert {p: code for p, (code, _) in results.items()} == {
        1: ErrorCode.NONE,
        2: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    }


def test_a_topic_that_is_being_deleted_elects_nobody() -> None:
    """17 with Kafka's text."""
    image = cluster((2, (1, 2))).replay([DeletionMarkerRecord("t")])
    results, _ = elect(image, PREFERRED, 0)
    assert results[0] == (ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")


def test_what_was_elected_before_a_failover_is_not_elected_again() -> None:
    """The request that comes again is told of it all the same."""
    request = ElectLeadersRequest(PREFERRED, None, 1_000)
    image = cluster((2, (1, 2)), (2, (1, 2)))
    first, _ = ELECT.decide(context(2), request, image, {}).elements
    settled = {first.element: first.outcome}
    again = ELECT.decide(context(2), request, image.replay(first.records), settled)
    assert [decided.element for decided in again.elements] == ["t:1"]
    assert set(again.wait.topics) == {"t:0", "t:1"}


def test_an_election_whose_wait_ran_out_is_told_so() -> None:
    """7 without a text."""
    request = ElectLeadersRequest(PREFERRED, None, 0)
    image = cluster((2, (1, 2)))
    (decided,) = ELECT.decide(context(2), request, image, {}).elements
    outcomes = {decided.element: decided.outcome}
    answer = ELECT.answer(context(2), request, outcomes, image, frozenset(outcomes))
    (result,) = answer.replica_election_results[0].partition_result
    assert (result.error_code, result.error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_without_the_right_nobody_is_elected(version: int) -> None:
    """31 at the top where there is room, and for each partition that was named."""
    denied = context(version, lambda *asked: False)
    request = ElectLeadersRequest(PREFERRED, [TopicPartitions("t", [0, 5])], 1_000)
    image = cluster((2, (1, 2)))
    decision = ELECT.decide(denied, request, image, {})
    outcomes = {d.element: d.outcome for d in decision.elements}
    assert not any(decided.records for decided in decision.elements)
    answer = ELECT.answer(denied, request, outcomes, image, frozenset())
    assert encode_response(43, version, answer)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    (topic,) = answer.replica_election_results
    assert [(p.error_code, p.error_message) for p in topic.partition_result] == [(31, None)] * 2


def refusals(version: int, *updates: FeatureUpdateKey) -> list[tuple[str, int, str | None]]:
    request = UpdateFeaturesRequest(feature_updates=list(updates))
    decision = FEATURES.decide(context(version), request, MetadataImage(), {})
    outcomes = {d.element: d.outcome for d in decision.elements}
    answer = FEATURES.answer(context(version), request, outcomes, MetadataImage(), frozenset())
    return [(r.feature, r.error_code, r.error_message) for r in answer.results]


REFUSALS = {
    "Feature name can not be empty.": (1, FeatureUpdateKey("", 1, 0)),
    "Received unknown upgrade type.": (1, FeatureUpdateKey("f", 1, 9)),
    "Can not delete non-existing finalized feature.": (1, FeatureUpdateKey("f", 0, 2)),
    "Can not provide versionLevel: 0 less than 1 without setting the SAFE downgradeType in the "
    "request.": (1, FeatureUpdateKey("f", 0, 1)),
    "Can not provide versionLevel: -3 less than 1 without setting the SAFE downgradeType in the "
    "request.": (0, FeatureUpdateKey("f", -3, 2, allow_downgrade=False)),
    "Could not apply finalized feature update because the provided feature is not supported.": (
        0,
        FeatureUpdateKey("f", 1, 0, allow_downgrade=True),
    ),
}


@pytest.mark.parametrize("text", REFUSALS)
def test_each_feature_update_is_refused_for_the_first_reason_that_applies(text: str) -> None:
    """Version 0 says by a flag what version 1 says by a type."""
    version, update = REFUSALS[text]
    assert refusals(version, update) == [(update.feature, ErrorCode.INVALID_REQUEST, text)]


def test_a_feature_that_comes_twice_is_answered_once() -> None:
    """As its first entry is judged; a live Kafka said so."""
    results = refusals(1, FeatureUpdateKey("f", 0, 3), FeatureUpdateKey("f", 1, 0))
    text = "Can not delete non-existing finalized feature."
    assert results == [("f", ErrorCode.INVALID_REQUEST, text)]


def test_without_the_right_no_feature_is_looked_at() -> None:
    """31 with its own text, and no results."""
    denied = context(1, lambda *asked: False)
    request = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("f", 1, 1)])
    decision = FEATURES.decide(denied, request, MetadataImage(), {})
    outcomes = {d.element: d.outcome for d in decision.elements}
    answer = FEATURES.answer(denied, request, outcomes, MetadataImage(), frozenset())
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert (answer.error_code, answer.error_message) == (error, error.default_text)
    assert answer.results == []
