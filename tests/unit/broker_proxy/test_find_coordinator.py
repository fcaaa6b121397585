"""FindCoordinator and DescribeGroups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bridgehead.kafka_wire.messages.describe_groups import DescribeGroupsRequest
from bridgehead.kafka_wire.messages.find_coordinator import FindCoordinatorRequest
from broker_proxy.apis.groups.coordinators import partition_of
from broker_proxy.apis.groups.describe_groups import DescribeGroups
from broker_proxy.apis.groups.find_coordinator import FindCoordinator
from broker_proxy.apis.groups.group_ports import NoGroups
from broker_proxy.client_request import ClientRequest
from tests.unit.broker_proxy.client_requests import a_request, authorize_every_client
from tests.unit.broker_proxy.coordinating_broker import CoordinatingBroker

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
GROUP, TRANSACTION, SHARE = 0, 1, 2
NO_COORDINATOR = {"nodeId": -1, "host": "", "port": -1}
NOT_AVAILABLE = "The coordinator is not available."


class RecordedTopics:
    """An AutoTopics that records the topics to create; `create` creates one that is waited for."""

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.create: Callable[[], None]

    def create_internal(self, request: ClientRequest, name: str) -> None:
        self.topics.append(name)

    async def internal_created(self, name: str) -> bool:
        self.create()
        return True


def an_api(
    broker: CoordinatingBroker, *, allowed: bool = True
) -> tuple[FindCoordinator, RecordedTopics]:
    requested: Any = RecordedTopics()
    may = authorize_every_client(allowed)
    return FindCoordinator(broker.view, broker.coordinators, requested, may, 5.0), requested


@pytest.mark.parametrize(
    ("key", "partitions", "expected"),
    [
        ("g", 50, 3),
        ("h", 5, 4),
        ("", 50, 0),
        ("é", 50, 33),
        ("orders-consumers", 50, 39),
        ("some-group-7", 50, 30),
        ("polygenelubricants", 50, 0),
    ],
)
def test_partition_of_a_key_is_computed_from_its_absolute_java_hash(
    key: str, partitions: int, expected: int
) -> None:
    assert partition_of(key, partitions) == expected


@pytest.mark.parametrize("version", range(7))
async def test_find_coordinator_requests_the_creation_of_a_missing_internal_topic(
    version: int,
) -> None:
    broker = CoordinatingBroker()
    api, requested = an_api(broker)
    request = FindCoordinatorRequest(key="g", coordinator_keys=["g", "h"])
    response = await broker.call(api, version, request)
    assert set(requested.topics) == {OFFSETS}
    if version >= 4:
        absent = {**NO_COORDINATOR, "errorCode": 15, "errorMessage": ""}
        assert response["coordinators"] == [{"key": key, **absent} for key in "gh"]
    else:
        text = {"errorMessage": NOT_AVAILABLE} if version else {}
        results = {key: value for key, value in response.items() if key != "throttleTimeMs"}
        assert results == {**NO_COORDINATOR, "errorCode": 15, **text}


@pytest.mark.parametrize("version", range(1, 7))
@pytest.mark.parametrize(("key_type", "topic"), [(GROUP, OFFSETS), (TRANSACTION, TRANSACTIONS)])
async def test_find_coordinator_returns_the_leader_of_the_keys_partition(
    version: int, key_type: int, topic: str
) -> None:
    """The topic has four partitions. The key "g" is in partition 3, the key "h" in partition 0."""
    broker = CoordinatingBroker()
    broker.create(topic, (2,), (1,), (1,), (3,))
    api, requested = an_api(broker)
    request = FindCoordinatorRequest(key="g", key_type=key_type, coordinator_keys=["g", "h"])
    response = await broker.call(api, version, request)
    if version >= 4:
        coordinators = [(c["nodeId"], c["host"], c["port"]) for c in response["coordinators"]]
        assert coordinators == [(3, "host3", 9003), (2, "host2", 9002)]
        assert {(c["errorCode"], c["errorMessage"]) for c in response["coordinators"]} == {(0, "")}
    else:
        assert (response["nodeId"], response["host"], response["port"]) == (3, "host3", 9003)
        assert (response["errorCode"], response["errorMessage"]) == (0, "NONE")
    assert requested.topics == []


async def test_a_leader_without_the_clients_listener_is_not_a_coordinator() -> None:
    broker = CoordinatingBroker()
    broker.create(OFFSETS, (3,))
    api, _ = an_api(broker)
    response = await broker.call(api, 6, FindCoordinatorRequest(coordinator_keys=["g"]), "INNER")
    (coordinator,) = response["coordinators"]
    assert (coordinator["errorCode"], coordinator["nodeId"]) == (15, -1)


@pytest.mark.parametrize(("version", "code"), [(4, 42), (5, 42), (6, 15)])
async def test_a_share_group_has_no_coordinator(version: int, code: int) -> None:
    """A Kafka without share groups returns the same response."""
    broker = CoordinatingBroker()
    api, requested = an_api(broker)
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=["g"])
    (coordinator,) = (await broker.call(api, version, request))["coordinators"]
    assert (coordinator["errorCode"], coordinator["errorMessage"]) == (code, "")
    assert requested.topics == []


@pytest.mark.parametrize(("key_type", "topic"), [(GROUP, OFFSETS), (TRANSACTION, TRANSACTIONS)])
async def test_a_drafted_broker_responds_when_the_internal_topic_has_a_leader(
    key_type: int, topic: str
) -> None:
    """KIP-590: the broker waits for the response to CreateTopics."""
    broker = CoordinatingBroker()
    api, requested = an_api(broker)
    requested.create = lambda: broker.create(topic, (2,), (1,), (1,), (3,))
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g", "h"])
    response = await api.handle(a_request(10, 6, dialect="drafted"), request)
    coordinators = [(c.node_id, c.host, c.port) for c in response.coordinators]
    assert coordinators == [(3, "host3", 9003), (2, "host2", 9002)]
    assert requested.topics == [topic]


async def test_a_drafted_broker_creates_no_topic_for_a_share_group() -> None:
    api, requested = an_api(CoordinatingBroker())
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=["g"])
    response = await api.handle(a_request(10, 6, dialect="drafted"), request)
    assert [coordinator.error_code for coordinator in response.coordinators] == [15]
    assert requested.topics == []


@pytest.mark.parametrize(("key_type", "code"), [(GROUP, 30), (TRANSACTION, 53)])
async def test_find_coordinator_without_the_describe_right_fails_and_creates_nothing(
    key_type: int, code: int
) -> None:
    broker = CoordinatingBroker()
    api, requested = an_api(broker, allowed=False)
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g"])
    (coordinator,) = (await broker.call(api, 6, request))["coordinators"]
    assert (coordinator["errorCode"], coordinator["nodeId"], requested.topics) == (code, -1, [])


async def test_describe_groups_without_the_describe_right_hides_the_coordinator() -> None:
    def may(_operation: str, _type: str, name: str) -> bool:
        return name == "seen"

    broker = CoordinatingBroker()
    broker.create(OFFSETS, (1,))
    request = DescribeGroupsRequest(groups=["hidden", "seen"])
    api = DescribeGroups(NoGroups(broker.coordinators), authorize_every_client(may))
    response = await broker.call(api, 5, request)
    assert [group["errorCode"] for group in response["groups"]] == [30, 0]
