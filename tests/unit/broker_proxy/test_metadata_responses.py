"""Metadata, DescribeCluster and ApiVersions beyond the recorded cases."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from immutables import Map

from bridgehead.kafka_wire.apis import Route
from bridgehead.kafka_wire.codec import decode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.api_versions import ApiVersionsRequest
from bridgehead.kafka_wire.messages.describe_cluster import DescribeClusterRequest
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker_proxy.apis.admin.api_versions import ApiVersions
from broker_proxy.apis.admin.cluster_view import ClusterView
from broker_proxy.apis.admin.describe_cluster import DescribeCluster
from broker_proxy.apis.admin.metadata import Metadata
from broker_proxy.client_request import ClientRequest
from broker_proxy.metadata.cache import MetadataCache
from cluster_model.acls.authorization import Authorize
from cluster_model.image import BrokerRegistration, Endpoint, MetadataImage
from cluster_model.records import PartitionRecord, PartitionState, TopicRecord
from cluster_model.scala_order import (
    long_map_order,
    mutable_int_order,
    partition_order,
    set_order,
)
from tests.unit.broker_proxy.client_requests import a_request, authorize_by, authorize_every_client
from tests.unit.broker_proxy.coordinating_broker import apply_image

NOT_REQUESTED = -2147483648


def topic_id(number: int) -> bytes:
    return bytes([number]) * 16


def an_image(live: Sequence[int] = (1, 2, 3)) -> MetadataImage:
    """Only brokers 1 and 2 have the listener INNER; topic `led` is led by 1, `third` by 3."""
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
    image: MetadataImage | None = None, named_controllers: Mapping[str, str] | None = None
) -> ClusterView:
    cache = apply_image(MetadataCache(lambda: None), image or an_image(), controller_id=2)
    numbers = iter(range(1_000))
    return ClusterView(
        cache,
        broker_id=1,
        cluster_id="cluster",
        named_controllers=named_controllers or {},
        choose=lambda count: next(numbers) % count,
    )


def request_of(key: int, version: int, listener: str = "OUTER") -> ClientRequest:
    return a_request(key, version, listener_name=listener, client_id=None)


def request_for(*names: str, ids: Sequence[bytes] = (), **fields: Any) -> MetadataRequest:
    topics = [MetadataRequestTopic(bytes(16), name) for name in names]
    topics += [MetadataRequestTopic(number, None) for number in ids]
    return MetadataRequest(topics=topics, **fields)


async def responded(
    api: Metadata, message: MetadataRequest, version: int = 12, listener: str = "OUTER"
) -> Any:
    response = await api.handle(request_of(3, version, listener), message)
    return decode_response(3, version, response) if isinstance(response, bytes) else response


def hiding(*names: str) -> Any:
    """An authorizer that hides some topics and the cluster from everyone."""

    def allows(operation: str, kind: str, name: str) -> bool:
        return kind == "TOPIC" and name not in names and operation in ("DESCRIBE", "READ")

    return authorize_every_client(allows)


@pytest.mark.parametrize("version", [1, 8, 12])
async def test_metadata_names_the_controller_and_the_rack_of_each_broker(version: int) -> None:
    """KIP-4 §Metadata Response v1. Broker 2 is the controller; broker 3 has no rack."""
    image = an_image()
    brokers = image.brokers
    for broker, rack in ((1, "left"), (2, "right")):
        brokers = brokers.set(broker, dataclasses.replace(brokers[broker], rack=rack))
    api = Metadata(view(dataclasses.replace(image, brokers=brokers)), authorize_for=hiding())
    response = await responded(api, MetadataRequest(topics=[]), version)
    assert response.controller_id == 2
    assert response.cluster_id == "cluster"
    assert sorted((row.node_id, row.host, row.port, row.rack) for row in response.brokers) == [
        (1, "host1", 9001, "left"),
        (2, "host2", 9002, "right"),
        (3, "host3", 9003, None),
    ]


async def test_metadata_hides_topics_that_the_client_may_not_describe() -> None:
    api = Metadata(view(), authorize_for=hiding("led", "missing"))
    everything = await responded(api, MetadataRequest(topics=None))
    assert [t.name for t in everything.topics] == ["third"]
    named = await responded(
        api, request_for("led", "missing", include_topic_authorized_operations=True)
    )
    assert [
        (t.error_code, t.topic_id, t.partitions, t.topic_authorized_operations)
        for t in named.topics
    ] == [(29, bytes(16), [], NOT_REQUESTED)] * 2
    by_id = await responded(api, request_for(ids=[topic_id(1), topic_id(9)]))
    assert [(t.error_code, t.name, t.topic_id) for t in by_id.topics] == [
        (29, None, topic_id(1)),
        (100, None, topic_id(9)),
    ]


@pytest.mark.parametrize("requested_id", [1, 9])
async def test_metadata_ignores_names_in_a_request_with_topic_ids(requested_id: int) -> None:
    async def create(_request: Any, names: Sequence[str]) -> dict[str, ErrorCode]:
        raise AssertionError(names)

    api = Metadata(view(), auto_create=create)
    response = await responded(api, request_for("third", "missing", ids=[topic_id(requested_id)]))
    assert [topic.topic_id for topic in response.topics] == [topic_id(requested_id)]


async def test_metadata_returns_authorized_operations() -> None:
    message = request_for(
        "third",
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    limited = await responded(Metadata(view(), authorize_for=hiding()), message, 10)
    assert limited.topics[0].topic_authorized_operations == 1 << 8 | 1 << 3
    assert limited.cluster_authorized_operations == 0
    free = await responded(Metadata(view()), message, 10)
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
async def test_metadata_omits_a_leader_without_the_clients_listener(
    listener: str, version: int, error: int, leader: int, replicas: list[int]
) -> None:
    response = await responded(Metadata(view()), request_for("third"), version, listener)
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.replica_nodes) == (
        error,
        leader,
        replicas,
    )
    assert [b.node_id for b in response.brokers] == ([2, 3, 1] if listener == "OUTER" else [2, 1])


async def test_metadata_reports_dead_brokers_as_each_version_does_in_kafka() -> None:
    api = Metadata(view(an_image(live=(1, 2))))
    response = await responded(api, request_for("led", "third"))
    led, third = (t.partitions[0] for t in response.topics)
    assert (led.error_code, led.leader_id, led.offline_replicas) == (0, 1, [3])
    assert (third.error_code, third.leader_id, third.leader_epoch) == (5, -1, 4)
    old = (await responded(api, request_for("led"), 0)).topics[0].partitions[0]
    assert (old.error_code, old.replica_nodes, old.isr_nodes) == (9, [1], [1])
    old_third = (await responded(api, request_for("third"), 0)).topics[0].partitions[0]
    assert (old_third.error_code, old_third.replica_nodes) == (5, [1]), "the leader is dead, too"
    complete = (await responded(Metadata(view()), request_for("led"), 0)).topics[0].partitions[0]
    assert (complete.error_code, complete.replica_nodes, complete.isr_nodes) == (0, [1, 3], [1, 3])
    response = await responded(api, request_for("led"), 1)
    new = response.topics[0].partitions[0]
    assert (new.error_code, new.replica_nodes, new.isr_nodes) == (0, [1, 3], [1, 3])
    assert {broker.node_id for broker in response.brokers} == {1, 2}


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
def test_brokers_have_the_order_of_scalas_long_map(
    brokers: tuple[int, ...], ordered: tuple[int, ...] | None
) -> None:
    assert set(long_map_order(brokers)) == set(brokers)
    assert ordered is None or long_map_order(brokers) == ordered


@pytest.mark.parametrize(
    ("replicas", "isr", "error"),
    [((1, 2), (1, 2), 0), ((1, 3), (1,), 9), ((1, 2), (1, 3), 9), ((1, 3), (1, 3), 9)],
)
async def test_metadata_v0_reports_a_dead_replica_or_a_dead_member_of_the_isr(
    replicas: tuple[int, ...], isr: tuple[int, ...], error: int
) -> None:
    """Broker 3 is dead."""
    records: list[Any] = [
        TopicRecord("t", topic_id(7), (replicas,), {}),
        PartitionRecord("t", 0, PartitionState(1, 4, isr, 1, 0)),
    ]
    api = Metadata(view(an_image(live=(1, 2)).replay(records)))
    old = (await responded(api, request_for("t"), 0)).topics[0].partitions[0]
    alive = [[broker for broker in nodes if broker != 3] for nodes in (replicas, isr)]
    assert (old.error_code, [old.replica_nodes, old.isr_nodes]) == (error, alive)
    new = (await responded(api, request_for("t"), 1)).topics[0].partitions[0]
    assert (new.error_code, new.replica_nodes, new.isr_nodes) == (0, [*replicas], [*isr])


async def test_an_empty_topic_list_requests_all_in_version_0_only() -> None:
    api = Metadata(view())
    assert len((await responded(api, request_for(), 0)).topics) == 2
    assert [topic.name for topic in (await responded(api, request_for("led"), 0)).topics] == ["led"]
    assert (await responded(api, request_for(), 1)).topics == []
    assert len((await responded(api, MetadataRequest(topics=None), 1)).topics) == 2


async def test_metadata_creates_missing_topics_if_name_and_rights_permit_it() -> None:
    created: list[list[str]] = []

    async def auto_create(request: ClientRequest, names: Sequence[str]) -> Mapping[str, ErrorCode]:
        created.append(list(names))
        return dict.fromkeys(names, ErrorCode.LEADER_NOT_AVAILABLE)

    def authorize_for(request: ClientRequest) -> Authorize:
        allows = hiding("hidden")(request)
        return authorize_by(lambda *action: action[0] == "CREATE" or allows(*action))

    api = Metadata(view(), authorize_for=authorize_for, auto_create=auto_create)
    response = await responded(api, request_for("led", "new", "bad name", "hidden"))
    assert created == [["new"]]
    codes = {t.name: t.error_code for t in response.topics}
    assert codes == {"led": 0, "new": 5, "bad name": 17, "hidden": 29}
    rejecting = request_for("new", allow_auto_topic_creation=False)
    assert (await responded(api, rejecting)).topics[0].error_code == 3
    assert len(created) == 1


async def test_metadata_caches_encoded_responses_per_request_and_listener() -> None:
    api = Metadata(view())
    first = await api.handle(request_of(3, 12), request_for("led"))
    assert await api.handle(request_of(3, 12), request_for("led")) is first
    assert await api.handle(request_of(3, 12, "INNER"), request_for("led")) != first
    assert await api.handle(request_of(3, 12), request_for("third")) != first


@pytest.mark.parametrize(
    ("named", "expected"),
    [("actual", [2, 2, 2]), ("self", [1, 1, 1]), ("77", [77, 77, 77]), ("random", [2, 3, 1])],
)
async def test_the_reported_controller_is_configurable_per_listener(
    named: str, expected: list[int]
) -> None:
    chosen = view(named_controllers={"OUTER": named})
    api = Metadata(chosen)
    results = [(await responded(api, request_for())).controller_id for _ in range(3)]
    assert results == expected
    assert (await responded(api, request_for(), 12, "INNER")).controller_id == 2


async def test_a_dead_controller_is_reported_as_none() -> None:
    api = DescribeCluster(view(an_image(live=(1, 3))))
    response = await api.handle(request_of(60, 1), DescribeClusterRequest())
    assert response.controller_id == -1
    assert {b.broker_id for b in response.brokers} == {1, 3}


TABLES = {"shipped": {19: Route.FORWARD, 3: Route.LOCAL, 18: Route.LOCAL, 37: Route.FORWARD}}


async def listed(ranges: Mapping[int, tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Return the versions that a broker lists while its controller supports these ranges."""
    api = ApiVersions(TABLES, lambda: 0, lambda: ranges)
    response = await api.handle(request_of(18, 3), ApiVersionsRequest("librdkafka", "2.14.0-rc1"))
    return [(k.api_key, k.min_version, k.max_version) for k in response.api_keys]


async def test_api_versions_lists_the_dialects_apis_and_records_the_software() -> None:
    api = ApiVersions(TABLES, lambda: 0)
    request = request_of(18, 3)
    await api.handle(request, ApiVersionsRequest("librdkafka", "2.14.0-rc1"))
    assert await listed({}) == [(3, 0, 12), (18, 0, 4), (19, 0, 7), (37, 0, 3)]
    assert request.connection.client.software_name == "librdkafka"
    assert request.connection.client.software_version == "2.14.0-rc1"


async def test_api_versions_limits_forwarded_apis_to_the_controllers_versions() -> None:
    reads = [(3, 0, 12), (18, 0, 4)]
    assert await listed({19: (2, 5), 37: (1, 99)}) == [*reads, (19, 2, 5), (37, 1, 3)]
    assert await listed({19: (0, 7)}) == [*reads, (19, 0, 7)]
    assert await listed({19: (8, 9), 37: (0, 3)}) == [*reads, (37, 0, 3)]
    assert await listed({19: (7, 9)}) == [*reads, (19, 7, 7)]


def test_partitions_and_sets_are_in_scalas_order() -> None:
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
def test_partition_order_lists_every_partition_once(count: int) -> None:
    assert sorted(partition_order(count)) == list(range(count))


def test_numbers_are_in_the_order_of_scalas_mutable_hash_map() -> None:
    assert list(mutable_int_order([0, -1])) == [-1, 0]
    assert list(mutable_int_order(range(11, -1, -1))) == list(range(12))
    assert list(mutable_int_order([17, 1, 16])) == [16, 1, 17]
