"""Metadata, DescribeCluster and ApiVersions where recorded answers do not reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from immutables import Map

from bridgehead.kafka_wire.codec import decode_response, encode_request
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import RequestHeader
from bridgehead.kafka_wire.messages.api_versions import ApiVersionsRequest
from bridgehead.kafka_wire.messages.describe_cluster import DescribeClusterRequest
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker_proxy.apis.api_versions import ApiVersions
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from broker_proxy.apis.cluster_view import ClusterView
from broker_proxy.apis.describe_cluster import DescribeCluster
from broker_proxy.apis.metadata import Metadata
from broker_proxy.metadata_cache import MetadataCache
from broker_proxy.routing import Route
from cluster_model.authorization import Authorize
from cluster_model.image import BrokerRegistration, Endpoint, MetadataImage
from cluster_model.principal import ANONYMOUS
from cluster_model.records import PartitionRecord, PartitionState, TopicRecord
from cluster_model.scala_order import (
    long_map_order,
    mutable_int_order,
    partition_order,
    set_order,
)
from cluster_model.update_metadata import full_parts
from envelope.messages import MetadataUpdate
from tests.unit.authorizing import saying, saying_to_everybody

NOT_ASKED = -2147483648


def topic_id(number: int) -> bytes:
    return bytes([number]) * 16


def an_image(live: Sequence[int] = (1, 2, 3)) -> MetadataImage:
    """Brokers of which only 1 and 2 have the listener INNER; topic `led` on 1, `inner` on 3."""
    brokers = {
        i: BrokerRegistration(
            i,
            i,
            tuple(
                Endpoint(name, "PLAINTEXT", f"host{i}", port + i)
                for name, port in (("OUTER", 9000), ("INNER", 8000))
                if name == "OUTER" or i < 3
            ),
        )
        for i in live
    }
    records: list[Any] = []
    for number, (name, replicas) in enumerate({"led": (1, 3), "third": (3, 1)}.items(), start=1):
        records.append(TopicRecord(name, topic_id(number), (replicas,), {}))
        records.append(PartitionRecord(name, 0, PartitionState(replicas[0], 4, replicas, 1, 0)))
    return MetadataImage(zxid=5, controller_epoch=1, brokers=Map(brokers)).replay(records)


def view(
    image: MetadataImage | None = None, controller_says: Mapping[str, str] | None = None
) -> ClusterView:
    cache = MetadataCache(lambda: None)
    (part,) = full_parts(image or an_image(), 2)
    cache.apply(MetadataUpdate(2, 1, 5, encode_request(6, 8, part), True, True))
    numbers = iter(range(1_000))
    return ClusterView(
        cache,
        broker_id=1,
        cluster_id="cluster",
        controller_says=controller_says or {},
        choose=lambda count: next(numbers) % count,
    )


def asked(key: int, version: int, listener: str = "OUTER") -> ClientRequest:
    connection = ClientConnectionInfo(
        "c", listener, "PLAINTEXT", "shipped", "127.0.0.1", b"\x7f\0\0\1", ANONYMOUS
    )
    header = RequestHeader(key, version, 1, None)
    return ClientRequest("r", header, b"", b"", connection, 0)


def request_for(*names: str, ids: Sequence[bytes] = (), **fields: Any) -> MetadataRequest:
    topics = [MetadataRequestTopic(bytes(16), name) for name in names]
    topics += [MetadataRequestTopic(number, None) for number in ids]
    return MetadataRequest(topics=topics, **fields)


async def answered(
    api: Metadata, message: MetadataRequest, version: int = 12, listener: str = "OUTER"
) -> Any:
    answer = await api.answer(asked(3, version, listener), message)
    return decode_response(3, version, answer) if isinstance(answer, bytes) else answer


def hiding(*names: str) -> Any:
    """An authorizer that keeps some topics, and everything about the cluster, from everybody."""

    def allows(operation: str, kind: str, name: str) -> bool:
        return kind == "TOPIC" and name not in names and operation in ("DESCRIBE", "READ")

    return saying_to_everybody(allows)


async def test_a_topic_that_may_not_be_described_is_left_out_or_refused_alike() -> None:
    """All topics: silently omitted. By name: 29 whether it exists or not. By id: without a name."""
    api = Metadata(view(), authorize_for=hiding("led", "missing"))
    everything = await answered(api, MetadataRequest(topics=None))
    assert [t.name for t in everything.topics] == ["third"]
    named = await answered(
        api, request_for("led", "missing", include_topic_authorized_operations=True)
    )
    assert [
        (t.error_code, t.topic_id, t.partitions, t.topic_authorized_operations)
        for t in named.topics
    ] == [(29, bytes(16), [], NOT_ASKED)] * 2
    by_id = await answered(api, request_for(ids=[topic_id(1), topic_id(9)]))
    assert [(t.error_code, t.name, t.topic_id) for t in by_id.topics] == [
        (29, None, topic_id(1)),
        (100, None, topic_id(9)),
    ]


@pytest.mark.parametrize("asked_id", [1, 9])
async def test_who_asks_for_one_by_its_id_is_told_of_none_by_its_name(asked_id: int) -> None:
    """Kafka's rule, whether the id is known or not; nor is a missing name created then."""

    async def create(_request: Any, names: Sequence[str]) -> dict[str, ErrorCode]:
        raise AssertionError(names)

    api = Metadata(view(), auto_create=create)
    answer = await answered(api, request_for("third", "missing", ids=[topic_id(asked_id)]))
    assert [topic.topic_id for topic in answer.topics] == [topic_id(asked_id)]


async def test_operations_are_those_that_the_asker_has() -> None:
    """One bit per operation; none of the cluster for who may not describe it."""
    message = request_for(
        "third",
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    limited = await answered(Metadata(view(), authorize_for=hiding()), message, 10)
    assert limited.topics[0].topic_authorized_operations == 1 << 8 | 1 << 3
    assert limited.cluster_authorized_operations == 0
    free = await answered(Metadata(view()), message, 10)
    assert free.topics[0].topic_authorized_operations == 3576
    assert free.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("listener", "version", "error", "leader", "replicas"),
    [
        ("OUTER", 12, 0, 3, [3, 1]),
        ("INNER", 12, 72, -1, [3, 1]),
        ("INNER", 6, 72, -1, [3, 1]),
        ("INNER", 5, 5, -1, [3, 1]),
    ],
)
async def test_a_leader_without_the_asked_listener_is_not_named(
    listener: str, version: int, error: int, leader: int, replicas: list[int]
) -> None:
    """72 from version 6 on, 5 before; the brokers listed are those that have the listener."""
    answer = await answered(Metadata(view()), request_for("third"), version, listener)
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.replica_nodes) == (
        error,
        leader,
        replicas,
    )
    assert [b.node_id for b in answer.brokers] == ([2, 3, 1] if listener == "OUTER" else [2, 1])


async def test_dead_brokers_show_as_the_version_shows_them() -> None:
    """A dead leader is 5; a dead replica is listed as offline, and in version 0 left out with 9."""
    api = Metadata(view(an_image(live=(1, 2))))
    answer = await answered(api, request_for("led", "third"))
    led, third = (t.partitions[0] for t in answer.topics)
    assert (led.error_code, led.leader_id, led.offline_replicas) == (0, 1, [3])
    assert (third.error_code, third.leader_id, third.leader_epoch) == (5, -1, 4)
    old = (await answered(api, request_for("led"), 0)).topics[0].partitions[0]
    assert (old.error_code, old.replica_nodes, old.isr_nodes) == (9, [1], [1])


@pytest.mark.parametrize(
    ("brokers", "ordered"),
    [
        ((1, 2, 3), (2, 3, 1)),
        ((1, 2), (2, 1)),
        ((1, 2, 3, 4, 5), (5, 1, 4, 2, 3)),
        ((1001, 1002, 1003), (1001, 1003, 1002)),
        ((5, 100, 1000, 10000), (5, 100, 10000, 1000)),
        ((1, 9, 17, 25, 33), (9, 33, 1, 25, 17)),
        ((0, 70_000, 140_000), None),
    ],
)
def test_brokers_come_in_the_order_of_scalas_long_map(
    brokers: tuple[int, ...], ordered: tuple[int, ...] | None
) -> None:
    """As Scala 2.13's mutable LongMap listed them; whatever the ids, none is lost."""
    assert set(long_map_order(brokers)) == set(brokers)
    assert ordered is None or long_map_order(brokers) == ordered


async def test_an_empty_list_means_all_in_version_0_and_none_later() -> None:
    """From version 1 on null means all."""
    api = Metadata(view())
    assert len((await answered(api, request_for(), 0)).topics) == 2
    assert (await answered(api, request_for(), 1)).topics == []
    assert len((await answered(api, MetadataRequest(topics=None), 1)).topics) == 2


@pytest.mark.parametrize(
    ("version", "topic", "error"),
    [
        (10, MetadataRequestTopic(topic_id(1), "led"), ErrorCode.INVALID_REQUEST),
        (11, MetadataRequestTopic(bytes(16), None), ErrorCode.INVALID_REQUEST),
        (12, MetadataRequestTopic(bytes(16), None), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_ids_before_their_time_refuse_the_whole_request(
    version: int, topic: MetadataRequestTopic, error: ErrorCode
) -> None:
    """Versions 10 and 11 have the field but not the meaning."""
    with pytest.raises(ApiError) as refused:
        await answered(Metadata(view()), MetadataRequest(topics=[topic]), version)
    assert refused.value.error is error


async def test_only_missing_legal_visible_names_are_created_automatically() -> None:
    """And only where the request allows it; the answer says what became of each."""
    created: list[list[str]] = []

    async def auto_create(request: ClientRequest, names: Sequence[str]) -> Mapping[str, ErrorCode]:
        created.append(list(names))
        return dict.fromkeys(names, ErrorCode.LEADER_NOT_AVAILABLE)

    def authorize_for(request: ClientRequest) -> Authorize:
        allows = hiding("hidden")(request)
        return saying(lambda *asked: asked[0] == "CREATE" or allows(*asked))

    api = Metadata(view(), authorize_for=authorize_for, auto_create=auto_create)
    answer = await answered(api, request_for("led", "new", "bad name", "hidden"))
    assert created == [["new"]]
    codes = {t.name: t.error_code for t in answer.topics}
    assert codes == {"led": 0, "new": 5, "bad name": 17, "hidden": 29}
    refusing = request_for("new", allow_auto_topic_creation=False)
    assert (await answered(api, refusing)).topics[0].error_code == 3
    assert len(created) == 1


async def test_the_same_question_gets_the_same_bytes() -> None:
    """Per version and listener, until the image changes."""
    api = Metadata(view())
    first = await api.answer(asked(3, 12), request_for("led"))
    assert await api.answer(asked(3, 12), request_for("led")) is first
    assert await api.answer(asked(3, 12, "INNER"), request_for("led")) != first
    assert await api.answer(asked(3, 12), request_for("third")) != first


@pytest.mark.parametrize(
    ("says", "expected"),
    [("actual", [2, 2, 2]), ("self", [1, 1, 1]), ("77", [77, 77, 77]), ("random", [2, 3, 1])],
)
async def test_what_is_said_of_the_controller_is_chosen_per_listener(
    says: str, expected: list[int]
) -> None:
    """The truth, this broker, a lie, or another live broker each time; INNER hears the truth."""
    chosen = view(controller_says={"OUTER": says})
    api = Metadata(chosen)
    told = [(await answered(api, request_for())).controller_id for _ in range(3)]
    assert told == expected
    assert (await answered(api, request_for(), 12, "INNER")).controller_id == 2


async def test_a_controller_that_is_not_alive_is_not_named() -> None:
    """-1: a client had no address for it anyway."""
    api = DescribeCluster(view(an_image(live=(1, 3))))
    answer = await api.answer(asked(60, 1), DescribeClusterRequest())
    assert answer.controller_id == -1
    assert {b.broker_id for b in answer.brokers} == {1, 3}


async def test_describe_cluster_knows_no_other_endpoints_than_brokers() -> None:
    """Controllers of KRaft are a mismatch, anything else is unsupported."""
    api = DescribeCluster(view())
    errors = [
        (await api.answer(asked(60, 1), DescribeClusterRequest(False, kind))).error_code
        for kind in (1, 2, 3)
    ]
    assert errors == [0, 114, 115]


TABLES = {"shipped": {19: Route.FORWARD, 3: Route.LOCAL, 18: Route.LOCAL, 37: Route.FORWARD}}


async def listed(ranges: Mapping[int, tuple[int, int]]) -> list[tuple[int, int, int]]:
    """What is listed beside a controller of these ranges."""
    api = ApiVersions(TABLES, lambda: 0, lambda: ranges)
    answer = await api.answer(asked(18, 3), ApiVersionsRequest("librdkafka", "2.14.0-rc1"))
    return [(k.api_key, k.min_version, k.max_version) for k in answer.api_keys]


async def test_api_versions_lists_what_the_listeners_dialect_serves() -> None:
    """Ascending, with the codec's ranges, and remembers who asked."""
    api = ApiVersions(TABLES, lambda: 0)
    request = asked(18, 3)
    await api.answer(request, ApiVersionsRequest("librdkafka", "2.14.0-rc1"))
    assert await listed({}) == [(3, 0, 12), (18, 0, 4), (19, 0, 7), (37, 0, 3)]
    assert request.connection.software_name == "librdkafka"
    assert request.connection.software_version == "2.14.0-rc1"


async def test_of_forwarded_apis_no_version_is_listed_that_the_controller_lacks() -> None:
    """Both ends of the ranges count; what it lacks altogether is not listed; reads stay."""
    reads = [(3, 0, 12), (18, 0, 4)]
    assert await listed({19: (2, 5), 37: (1, 99)}) == [*reads, (19, 2, 5), (37, 1, 3)]
    assert await listed({19: (0, 7)}) == [*reads, (19, 0, 7)]
    assert await listed({19: (8, 9), 37: (0, 3)}) == [*reads, (37, 0, 3)]


def test_the_order_of_lists_is_kafkas() -> None:
    """Seen live: four partitions, five names; a small set keeps the order of the request."""
    assert partition_order(4) == (0, 2, 3, 1)
    names = [f"create-topics-v4-{end}" for end in ("a", "assigned", "ok1", "ok2", "rf9")]
    assert [name.rpartition("-")[2] for name in set_order(names)] == [
        "ok2",
        "ok1",
        "assigned",
        "rf9",
        "a",
    ]
    assert set_order(["b", "a", "b"]) == ["b", "a"]


@pytest.mark.parametrize("count", [1, 2, 7, 8, 100, 1_024, 1_025])
def test_every_partition_is_listed_once(count: int) -> None:
    """Whatever their number."""
    assert sorted(partition_order(count)) == list(range(count))


def test_numbers_come_in_the_order_of_scalas_mutable_hash_map() -> None:
    """As a live Kafka's text of assignments showed them: -1 and 0 share a slot, by signed hash."""
    assert list(mutable_int_order([0, -1])) == [-1, 0]
    assert list(mutable_int_order(range(11, -1, -1))) == list(range(12))
    assert list(mutable_int_order([17, 1, 16])) == [16, 1, 17]
