"""Reassignments where recorded answers do not reach: progress, cancelling, dead brokers.

Also rights, failover in the middle, and a topic whose deletion waits for its reassignment.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from immutables import Map

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from bridgehead.kafka_wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from cluster_model.elections import elect_new
from cluster_model.image import BrokerRegistration, MetadataImage
from cluster_model.records import (
    AssignmentRecord,
    DeletionMarkerRecord,
    PartitionRecord,
    TopicRecord,
)
from controller.apis.alter_partition_reassignments import AlterPartitionReassignments
from controller.apis.base import DONE, Decision, RequestContext
from controller.apis.list_partition_reassignments import ListPartitionReassignments
from controller.background import complete_reassignments, sweep
from tests.unit.authorizing import Rule
from tests.unit.request_contexts import a_context

ID = bytes([7]) * 16
ALTER, LIST = AlterPartitionReassignments(), ListPartitionReassignments()


def context(authorize: Rule | bool = True) -> RequestContext:
    return a_context(45, 0, authorize, random=random.Random(3))


def alive(*ids: int) -> Map[int, BrokerRegistration]:
    return Map({i: BrokerRegistration(i, i, ()) for i in ids})


def with_topic(*assignment: tuple[int, ...], brokers: Sequence[int] = (1, 2, 3, 4)) -> Any:
    """A cluster with topic `t`, whose partitions are led."""
    image = MetadataImage(controller_epoch=5, brokers=alive(*brokers))
    image = image.replay([TopicRecord("t", ID, assignment, {})])
    states = [elect_new(replicas, image.brokers, 5) for replicas in assignment]
    return image.replay([PartitionRecord("t", p, s) for p, s in enumerate(states) if s is not None])


def asked(*targets: list[int] | None, name: str = "t") -> AlterPartitionReassignmentsRequest:
    partitions = [ReassignablePartition(p, target) for p, target in enumerate(targets)]
    return AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name, partitions)])


def decide(image: MetadataImage, request: AlterPartitionReassignmentsRequest) -> Decision:
    return ALTER.decide(context(), request, image, {})


def after(image: MetadataImage, *targets: list[int] | None) -> MetadataImage:
    """The image when a reassignment to `targets` was accepted."""
    decision = decide(image, asked(*targets))
    assert all(decided.outcome == DONE for decided in decision.elements)
    return image.replay([r for decided in decision.elements for r in decided.records])


def steps(image: MetadataImage) -> list[MetadataImage]:
    """The images that the controller's own work makes of `image`, one by one."""
    images = [image]
    for records in complete_reassignments(lambda: images[-1], ["t"]):
        images.append(images[-1].replay(records))
    return images[1:]


def listed(image: MetadataImage, topics: Any = None) -> list[tuple[int, Any, Any, Any]]:
    request = ListPartitionReassignmentsRequest(topics=topics)
    answer = LIST.answer(context(), request, {}, image, frozenset())
    return [
        (p.partition_index, p.replicas, p.adding_replicas, p.removing_replicas)
        for topic in answer.topics
        for p in topic.partitions
    ]


def test_a_reassignment_shows_its_progress_until_the_old_replicas_are_gone() -> None:
    """Begun: all replicas, old ISR. Then the new ones are in sync. Then the old ones go."""
    begun = after(with_topic((1, 2)), [3, 4])
    assert listed(begun) == [(0, [3, 4, 1, 2], [3, 4], [1, 2])]
    assert begun.topics["t"].states[0].isr == (1, 2)
    joined, ended = steps(begun)
    assert joined.topics["t"].states[0].isr == (1, 2, 3, 4)
    assert listed(joined) == listed(begun)
    assert listed(ended) == []
    assert ended.topics["t"].assignment == ((3, 4),)
    state = ended.topics["t"].states[0]
    assert (state.leader, state.isr) == (3, (3, 4))


def test_epochs_step_as_in_kafka() -> None:
    """The leader epoch steps when it begins and when it ends, not when a replica joins the ISR."""
    begun = after(with_topic((1,)), [2])
    joined, ended = steps(begun)
    epochs = [i.topics["t"].states[0].leader_epoch for i in (begun, joined, ended)]
    versions = [i.topics["t"].states[0].partition_epoch for i in (begun, joined, ended)]
    assert (epochs, versions) == ([1, 1, 2], [1, 2, 3])


def test_a_leader_that_stays_among_the_replicas_goes_on_leading() -> None:
    """The preferred leader is another one; nobody moves the leader without need."""
    *_, ended = steps(after(with_topic((1, 2)), [3, 1]))
    assert ended.topics["t"].assignment == ((3, 1),)
    assert ended.topics["t"].states[0].leader == 1


def test_what_needs_no_new_replica_is_done_at_once() -> None:
    """Fewer replicas, or another order: nothing to wait for, and nothing is listed."""
    fewer = after(with_topic((1, 2, 3)), [3])
    assert fewer.topics["t"].assignment == ((3,),)
    assert fewer.topics["t"].states[0].leader == 3
    assert listed(fewer) == []
    assert steps(fewer) == []
    turned = after(with_topic((1, 2)), [2, 1])
    assert turned.topics["t"].assignment == ((2, 1),)
    assert turned.topics["t"].states[0].leader_epoch == 1
    assert listed(turned) == []


def test_a_dead_target_keeps_a_reassignment_running_until_it_comes_back() -> None:
    """It was a replica before, so the request is accepted; the end waits for it."""
    image = with_topic((1, 3))
    image = next_image(image, brokers=alive(1, 2))
    begun = after(image, [2, 3])
    waiting = steps(begun)[-1]
    assert waiting.topics["t"].states[0].isr == (1, 2)
    assert listed(waiting) == [(0, [2, 3, 1], [2], [1])]
    *_, ended = steps(next_image(waiting, brokers=alive(1, 2, 3)))
    assert ended.topics["t"].assignment == ((2, 3),)


def next_image(image: MetadataImage, brokers: Map[int, BrokerRegistration]) -> MetadataImage:
    """The image after the controller has looked over it for other live brokers."""
    image = MetadataImage(
        image.zxid, 5, brokers, image.topics, image.topic_names, image.colliding, image.configs
    )
    images = [image]
    for records in sweep(lambda: images[-1], ["t"], lambda *asked: False):
        images.append(images[-1].replay(records))
    return images[-1]


def test_a_target_that_dies_on_the_way_holds_up_only_its_partition() -> None:
    """Partition 0 waits for broker 4; partition 1 is done."""
    begun = after(with_topic((1,), (1,)), [4], [2])
    waiting = steps(next_image(begun, brokers=alive(1, 2, 3)))[-1]
    assert listed(waiting) == [(0, [4, 1], [4], [1])]
    assert waiting.topics["t"].assignment[1] == (2,)


def test_a_cancelled_reassignment_goes_back_to_where_it_began() -> None:
    """Added replicas leave the ISR and the assignment; the leader stays."""
    joined, _ = steps(after(with_topic((1, 2)), [3]))
    back = after(joined, None)
    topic = back.topics["t"]
    assert topic.assignment == ((1, 2),)
    assert (topic.states[0].leader, topic.states[0].isr) == (1, (1, 2))
    assert listed(back) == []


def test_a_cancelled_reassignment_whose_new_replica_leads_elects_an_old_one() -> None:
    """A preferred election may have made it leader meanwhile."""
    joined, _ = steps(after(with_topic((1, 2)), [3]))
    state = joined.topics["t"].states[0]
    led = state._replace(leader=3, partition_epoch=state.partition_epoch + 1)
    back = after(joined.replay([PartitionRecord("t", 0, led)]), None)
    assert back.topics["t"].states[0].leader == 1


def test_a_new_reassignment_on_top_of_a_running_one_keeps_the_origin() -> None:
    """What the first one had added is dropped where the second does not want it."""
    joined, _ = steps(after(with_topic((1, 2)), [3]))
    again = after(joined, [4])
    assert listed(again) == [(0, [4, 1, 2], [4], [1, 2])]
    assert 3 not in again.topics["t"].states[0].isr


def test_the_last_entry_of_a_partition_counts_and_cancelling_may_be_it() -> None:
    """As in Kafka; the partition is answered once."""
    partitions = [ReassignablePartition(0, [3]), ReassignablePartition(0, None)]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t", partitions)])
    (decided,) = decide(with_topic((1,)), request).elements
    assert decided.outcome.error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_many_partitions_of_a_topic_are_one_write_of_its_znode() -> None:
    """The first element brings it; with 1,000 partitions a thousand would be a gigabyte."""
    decision = decide(with_topic(*[(1,)] * 200), asked(*[[2]] * 200))
    records = [r for decided in decision.elements for r in decided.records]
    assert sum(isinstance(r, AssignmentRecord) for r in records) == 1
    assert isinstance(decision.elements[0].records[0], AssignmentRecord)
    assert len(decision.elements) == 200


def test_a_request_that_comes_again_after_a_failover_goes_on() -> None:
    """The first partition was committed with the topic's znode, the others were not."""
    before = with_topic((1,), (1,))
    first, _ = decide(before, asked([2], [3])).elements
    found = before.replay(first.records)
    assert [p for p, *_ in listed(found)] == [0, 1]
    settled = {first.element: first.outcome}
    decision = ALTER.decide(context(), asked([2], [3]), found, settled)
    (second,) = decision.elements
    assert second.element == "t:1"
    assert second.outcome == DONE
    *_, ended = steps(found.replay(second.records))
    assert ended.topics["t"].assignment == ((2,), (3,))


def test_a_new_controller_ends_what_an_old_one_began() -> None:
    """Without the request coming again: the image as loaded is enough."""
    before = with_topic((1,), (1,))
    first, _ = decide(before, asked([2], [3])).elements
    *_, ended = steps(before.replay(first.records))
    assert ended.topics["t"].assignment == ((2,), (3,))
    assert ended.topics["t"].states[1].leader == 3


def test_a_topic_marked_for_deletion_goes_when_its_reassignment_has_ended() -> None:
    """Until then it stays, and nothing new begins on it."""
    marked = after(with_topic((1,)), [2]).replay([DeletionMarkerRecord("t")])
    (refused,) = decide(marked, asked([3])).elements
    assert refused.outcome.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    *_, gone = steps(marked)
    assert "t" not in gone.topics


def test_without_the_right_nothing_begins_and_nothing_is_listed() -> None:
    """31 at the top and for every partition; the text is the code's own."""
    denied = context(lambda *asked: False)
    image = with_topic((1,))
    decision = ALTER.decide(denied, asked([2]), image, {})
    outcomes = {decided.element: decided.outcome for decided in decision.elements}
    assert not any(decided.records for decided in decision.elements)
    answer = ALTER.answer(denied, asked([2]), outcomes, image, frozenset())
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert (answer.error_code, answer.error_message) == (error, error.default_text)
    assert [p.error_code for t in answer.responses for p in t.partitions] == [error]
    topics = [ListPartitionReassignmentsTopics("t", [0])]
    request = ListPartitionReassignmentsRequest(topics=topics)
    decision = LIST.decide(denied, request, image, {})
    outcomes = {decided.element: decided.outcome for decided in decision.elements}
    shown = LIST.answer(denied, request, outcomes, image, frozenset())
    assert (shown.error_code, shown.topics[0].partitions[0].replicas) == (error, [])


def test_only_the_partitions_asked_for_are_listed() -> None:
    """Unknown topics, unknown partitions and those at rest are left out."""
    begun = after(with_topic((1,), (1,), (1,)), [2], [2])
    topics = [
        ListPartitionReassignmentsTopics("t", [1, 1, 2, 9, -1]),
        ListPartitionReassignmentsTopics("missing", [0]),
    ]
    assert [p for p, *_ in listed(begun, topics)] == [1]


def test_a_topic_that_outgrows_its_znode_is_refused_before_it_is_written() -> None:
    """ZooKeeper would drop the session over it."""
    big = tuple((1,) for _ in range(40_000))
    decision = decide(with_topic(*big), asked(*[[2, 3, 4]] * 40_000))
    assert {decided.outcome.error for decided in decision.elements} == {
        ErrorCode.UNKNOWN_SERVER_ERROR
    }
    assert not any(decided.records for decided in decision.elements)
