"""ControlledShutdown moves leaders off a broker, and takes the broker out of the ISRs."""

from __future__ import annotations

import pytest
from immutables import Map

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from cluster_model.image import BrokerRegistration, MetadataImage
from cluster_model.records import (
    DeletionMarkerRecord,
    PartitionRecord,
    PartitionState,
    Record,
    TopicRecord,
)
from controller.apis.base import Results
from controller.apis.controlled_shutdown import ControlledShutdown
from tests.unit.controller.request_contexts import a_context

API = ControlledShutdown()
REPLICAS = (1, 2, 3)


def state(leader: int, *isr: int) -> PartitionState:
    return PartitionState(leader, 4, isr, 7, 9)


def image(*states: PartitionState, replicas: tuple[int, ...] = REPLICAS) -> MetadataImage:
    brokers = Map({n: BrokerRegistration(n, 100 + n, ()) for n in (1, 2, 3)})
    topic = TopicRecord("orders", b"o" * 16, (replicas,) * len(states), {})
    partitions = [PartitionRecord("orders", number, each) for number, each in enumerate(states)]
    return MetadataImage(controller_epoch=8, brokers=brokers).replay([topic, *partitions])


def answer(
    before: MetadataImage,
    broker: int = 1,
    epoch: int = 101,
    *,
    version: int = 3,
    allowed: bool = True,
) -> tuple[dict[int, PartitionState], ControlledShutdownResponse]:
    """Return the changed states by partition, and the response."""
    context = a_context(ApiKey.CONTROLLED_SHUTDOWN, version, allowed)
    request = ControlledShutdownRequest(broker, epoch)
    decision = API.decide(context, request, before, {})
    records: list[Record] = [record for each in decision.elements for record in each.records]
    outcomes = {each.element: each.outcome for each in decision.elements}
    response = API.response(context, request, Results(outcomes, before.replay(records)))
    changed = {each.partition: each.state for each in records if isinstance(each, PartitionRecord)}
    return changed, response


def test_leaders_move_to_the_first_other_replica_in_sync() -> None:
    changed, response = answer(image(state(1, 1, 2, 3), state(1, 3, 1)))
    assert changed == {
        0: PartitionState(2, 5, (2, 3), 8, 10),
        1: PartitionState(3, 5, (3,), 8, 10),
    }
    assert (response.error_code, response.remaining_partitions) == (0, [])


def test_follower_leaves_the_isr() -> None:
    changed, _ = answer(image(state(2, 2, 1, 3)))
    assert changed == {0: PartitionState(2, 5, (2, 3), 8, 10)}


def test_partition_without_another_replica_in_sync_remains() -> None:
    changed, response = answer(image(state(1, 1), state(1, 1, 2)))
    assert changed == {1: PartitionState(2, 5, (2,), 8, 10)}
    (remaining,) = response.remaining_partitions
    assert (remaining.topic_name, remaining.partition_index) == ("orders", 0)


def test_partitions_with_one_replica_and_deleted_topics_do_not_count() -> None:
    alone = image(state(1, 1), replicas=(1,))
    deleted = image(state(1, 1, 2)).replay([DeletionMarkerRecord("orders")])
    for before in (alone, deleted):
        changed, response = answer(before)
        assert (changed, response.remaining_partitions) == ({}, [])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"broker": 4, "epoch": 104}, ErrorCode.BROKER_NOT_AVAILABLE),
        ({"epoch": 100}, ErrorCode.STALE_BROKER_EPOCH),
        ({"epoch": 100, "version": 1}, ErrorCode.NONE),
        ({"allowed": False}, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
def test_request_is_checked(options: dict[str, int], error: ErrorCode) -> None:
    changed, response = answer(image(state(1, 1, 2, 3)), **options)
    assert response.error_code == error
    assert bool(changed) is (error is ErrorCode.NONE)
