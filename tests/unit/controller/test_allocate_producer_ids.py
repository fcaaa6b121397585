"""AllocateProducerIds: no producer id is given out twice. KIP-730."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from immutables import Map

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from cluster_model.image import BrokerRegistration, MetadataImage
from cluster_model.records import ProducerIdBlockRecord, ProducerIds
from cluster_model.znodes.layout import ProducerIdBlockZnode
from cluster_model.znodes.operations import SetData
from cluster_model.znodes.values import ZnodeContentError
from controller.apis.allocate_producer_ids import AllocateProducerIds
from controller.apis.base import Outcome, Results
from controller.store.plan import plan_operations
from tests.unit.controller.test_alter_partition import context

API = AllocateProducerIds()
IMAGE = MetadataImage(brokers=Map({2: BrokerRegistration(2, 102, ())}))
REQUEST = AllocateProducerIdsRequest(2, 102)


def allocate(image: MetadataImage) -> tuple[MetadataImage, Any]:
    (decided,) = API.decide(context(0), REQUEST, image, {}).elements
    after = image.replay(decided.records)
    results = Results({decided.element: decided.outcome}, after)
    return after, API.response(context(0), REQUEST, results)


def test_blocks_of_producer_ids_are_consecutive() -> None:
    image, first = allocate(IMAGE)
    image, second = allocate(image)
    assert [first.producer_id_start, second.producer_id_start] == [0, 1000]
    assert second.producer_id_len == 1000
    assert image.producer_ids == ProducerIds(2000, 2)


def test_block_is_written_in_kafkas_layout_at_the_known_version() -> None:
    image = replace(IMAGE, producer_ids=ProducerIds(5000, 7))
    content = b'{"version":1,"broker":2,"block_start":"5000","block_end":"5999"}'
    assert plan_operations([ProducerIdBlockRecord(2, 5000)], image) == [
        SetData("/latest_producer_id_block", content, 7)
    ]
    assert ProducerIdBlockZnode.decode(content, 8) == ProducerIds(6000, 8)
    assert ProducerIdBlockZnode.decode(None, 0) == ProducerIds(0, 0)


def test_invalid_block_is_an_error() -> None:
    with pytest.raises(ZnodeContentError):
        ProducerIdBlockZnode.decode(b"{}", 1)
    broken = replace(IMAGE, producer_ids=None)
    (decided,) = API.decide(context(0), REQUEST, broken, {}).elements
    assert decided.outcome.error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_resend_gets_the_same_block() -> None:
    done = {"block": Outcome(ErrorCode.NONE, numbers=(3000,))}
    assert not API.decide(context(0), REQUEST, IMAGE, done).elements
    assert API.response(context(0), REQUEST, Results(done, IMAGE)).producer_id_start == 3000


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (AllocateProducerIdsRequest(3, 102), ErrorCode.BROKER_ID_NOT_REGISTERED),
        (AllocateProducerIdsRequest(2, 101), ErrorCode.STALE_BROKER_EPOCH),
    ],
)
def test_stale_broker_gets_no_block(request_: AllocateProducerIdsRequest, error: ErrorCode) -> None:
    (decided,) = API.decide(context(0), request_, IMAGE, {}).elements
    assert decided.outcome.error is error
