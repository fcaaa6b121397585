"""AlterPartition: which broker may change an ISR, and which changes are valid.

See docs/kafka/partitions.md#isr-changes.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from immutables import Map

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionTopicDataPartitionData,
    BrokerState,
    PartitionData,
    TopicData,
)
from cluster_model.image import BrokerRegistration, MetadataImage
from cluster_model.records import (
    PartitionRecord,
    PartitionState,
    TopicRecord,
    TopicRemovalRecord,
)
from controller.apis.alter_partition import AlterPartition
from controller.apis.base import Decision, RequestContext, Results
from tests.unit.controller.request_contexts import a_context

ORDERS = b"o" * 16
API = AlterPartition()
STATE = PartitionState(leader=1, leader_epoch=4, isr=(1, 2), controller_epoch=7, partition_epoch=9)


def image(state: PartitionState = STATE, live: tuple[int, ...] = (1, 2, 3)) -> MetadataImage:
    brokers = Map({n: BrokerRegistration(n, 100 + n, ()) for n in live})
    return MetadataImage(controller_epoch=8, brokers=brokers).replay(
        [TopicRecord("orders", ORDERS, ((1, 2, 3),), {}), PartitionRecord("orders", 0, state)]
    )


def context(version: int = 3, *, allowed: bool = True) -> RequestContext:
    return a_context(ApiKey.ALTER_PARTITION, version, allowed)


def request(isr: tuple[int, ...], **fields: int) -> AlterPartitionRequest:
    broker_id = fields.pop("broker_id", 1)
    row = PartitionData(
        partition_index=fields.get("partition", 0),
        leader_epoch=fields.get("leader_epoch", STATE.leader_epoch),
        new_isr_with_epochs=[BrokerState(replica, 100 + replica) for replica in isr],
        new_isr=list(isr),
        leader_recovery_state=fields.get("recovering", 0),
        partition_epoch=fields.get("partition_epoch", STATE.partition_epoch),
    )
    epoch = fields.get("broker_epoch", 100 + broker_id)
    return AlterPartitionRequest(broker_id, epoch, [TopicData(ORDERS, "orders", [row])])


def response_to(
    wanted: AlterPartitionRequest, before: MetadataImage, version: int = 3
) -> tuple[Decision, AlterPartitionTopicDataPartitionData]:
    """Apply the records; return the decision and the partition's row in the response."""
    decision = API.decide(context(version), wanted, before, {})
    records = [record for element in decision.elements for record in element.records]
    outcomes = {element.element: element.outcome for element in decision.elements}
    results = Results(outcomes, before.replay(records))
    (topic,) = API.response(context(version), wanted, results).topics
    return decision, topic.partitions[0]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_leader_extends_isr(version: int) -> None:
    decision, row = response_to(request((1, 2, 3)), image(), version)
    (decided,) = decision.elements
    after = PartitionState(1, 4, (1, 2, 3), 8, 10)
    assert decided.records == (PartitionRecord("orders", 0, after),)
    assert (row.error_code, row.leader_id, row.leader_epoch) == (0, 1, 4)
    assert (row.isr, row.partition_epoch) == ([1, 2, 3], 10)


def test_retry_of_an_executed_request_succeeds_without_a_write() -> None:
    after = STATE._replace(isr=(1, 2, 3), partition_epoch=10)
    decision, row = response_to(request((1, 2, 3)), image(after))
    assert decision.elements[0].records == ()
    assert (row.error_code, row.isr, row.partition_epoch) == (0, [1, 2, 3], 10)


REJECTED = [
    ({"leader_epoch": 5}, ErrorCode.NOT_CONTROLLER),
    ({"partition_epoch": 10}, ErrorCode.NOT_CONTROLLER),
    ({"leader_epoch": 3}, ErrorCode.FENCED_LEADER_EPOCH),
    ({"partition_epoch": 8}, ErrorCode.INVALID_UPDATE_VERSION),
    ({"recovering": 1}, ErrorCode.INVALID_REQUEST),
    ({"partition": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ({"broker_id": 2}, ErrorCode.INVALID_REQUEST),
]


@pytest.mark.parametrize(("fields", "error"), REJECTED)
def test_wrong_proposal_is_rejected(fields: dict[str, int], error: ErrorCode) -> None:
    decision, row = response_to(request((1, 2, 3), **fields), image())
    assert (row.error_code, decision.elements[0].records) == (error, ())


@pytest.mark.parametrize("isr", [(2, 3), (1, 1), (1, 4), ()])
def test_an_isr_contains_the_leader_and_distinct_replicas_only(isr: tuple[int, ...]) -> None:
    _, row = response_to(request(isr), image())
    assert row.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("version", "error"),
    [(1, ErrorCode.OPERATION_NOT_ATTEMPTED), (2, ErrorCode.INELIGIBLE_REPLICA)],
)
def test_dead_replica_does_not_join_the_isr(version: int, error: ErrorCode) -> None:
    _, row = response_to(request((1, 2, 3)), image(live=(1, 2)), version)
    assert row.error_code == error


def test_unknown_topic_id_is_reported() -> None:
    wanted = request((1, 2, 3))
    wanted.topics[0].topic_id = b"x" * 16
    _, row = response_to(wanted, image())
    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_topic_that_is_deleted_before_the_response_is_unknown(version: int) -> None:
    wanted, before = request((1, 2, 3)), image()
    decision = API.decide(context(version), wanted, before, {})
    outcomes = {element.element: element.outcome for element in decision.elements}
    results = Results(outcomes, before.replay([TopicRemovalRecord("orders")]))
    (topic,) = API.response(context(version), wanted, results).topics
    by_name = version < 2
    expected = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if by_name else ErrorCode.UNKNOWN_TOPIC_ID
    assert topic.partitions[0].error_code == expected


def test_a_topic_that_is_created_before_the_response_is_unknown() -> None:
    wanted, empty = request((1, 2, 3)), MetadataImage(brokers=image().brokers)
    decision = API.decide(context(), wanted, empty, {})
    outcomes = {element.element: element.outcome for element in decision.elements}
    (topic,) = API.response(context(), wanted, Results(outcomes, image())).topics
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("fields", [{"broker_epoch": 7}, {"broker_id": 5}])
def test_stale_broker_is_rejected(fields: dict[str, int]) -> None:
    decision = API.decide(context(), request((1, 2, 3), **fields), image(), {})
    assert decision.elements[0].outcome.error is ErrorCode.STALE_BROKER_EPOCH


def test_a_client_needs_cluster_action_and_a_broker_always_has_it() -> None:
    denied = context(allowed=False)
    decision = API.decide(denied, request((1, 2, 3)), image(), {})
    assert decision.elements[0].outcome.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    from_broker = replace(denied, made_by_broker=True)
    assert API.decide(from_broker, request((1, 2, 3)), image(), {}).elements[0].records


def test_recovered_leader_clears_the_recovery_state() -> None:
    recovering = STATE._replace(isr=(1,), recovering=True)
    decision, row = response_to(request((1,)), image(recovering))
    (record,) = decision.elements[0].records
    assert isinstance(record, PartitionRecord)
    assert not record.state.recovering
    assert row.leader_recovery_state == 0
