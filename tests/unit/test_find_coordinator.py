"""Who coordinates a group or a transactional id, and what is said while nobody can."""

from __future__ import annotations

from typing import Any

import pytest

from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.describe_groups import DescribeGroupsRequest
from bridgehead.kafka_wire.messages.find_coordinator import FindCoordinatorRequest
from broker_proxy.apis.base import ClientRequest
from broker_proxy.apis.describe_groups import DescribeGroups
from broker_proxy.apis.find_coordinator import FindCoordinator
from broker_proxy.coordinators import partition_of
from tests.unit.authorizing import saying_to_everybody
from tests.unit.coordinating_broker import CoordinatingBroker

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
GROUP, TRANSACTION, SHARE = 0, 1, 2
NOBODY = {"nodeId": -1, "host": "", "port": -1}
NOT_AVAILABLE = "The coordinator is not available."


class Asked:
    """Stands for AutoTopics: remembers what it should create."""

    def __init__(self) -> None:
        self.topics: list[str] = []

    def create_internal(self, request: ClientRequest, name: str) -> None:
        self.topics.append(name)


def an_api(broker: CoordinatingBroker, *, allowed: bool = True) -> tuple[FindCoordinator, Asked]:
    asked: Any = Asked()
    may = saying_to_everybody(allowed)
    return FindCoordinator(broker.view, broker.coordinators, asked, may, 5.0), asked


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
def test_a_key_belongs_to_the_partition_of_its_java_hash(
    key: str, partitions: int, expected: int
) -> None:
    """A negative hash counts by its absolute value; the one that has none belongs to 0."""
    assert partition_of(key, partitions) == expected


@pytest.mark.parametrize("version", range(7))
async def test_a_missing_internal_topic_is_asked_for(version: int) -> None:
    """Meanwhile nobody coordinates; the older versions have the code's text, the newer none."""
    broker = CoordinatingBroker()
    api, asked = an_api(broker)
    request = FindCoordinatorRequest(key="g", coordinator_keys=["g", "h"])
    answer = await broker.ask(api, version, request)
    assert set(asked.topics) == {OFFSETS}
    if version >= 4:
        nobody = {**NOBODY, "errorCode": 15, "errorMessage": ""}
        assert answer["coordinators"] == [{"key": key, **nobody} for key in "gh"]
    else:
        text = {"errorMessage": NOT_AVAILABLE} if version else {}
        told = {key: value for key, value in answer.items() if key != "throttleTimeMs"}
        assert told == {**NOBODY, "errorCode": 15, **text}


@pytest.mark.parametrize("version", range(1, 7))
@pytest.mark.parametrize(("key_type", "topic"), [(GROUP, OFFSETS), (TRANSACTION, TRANSACTIONS)])
async def test_the_leader_of_the_keys_partition_coordinates(
    version: int, key_type: int, topic: str
) -> None:
    """ "g" is of partition 3 of 4, "h" of partition 0."""
    broker = CoordinatingBroker()
    broker.create(topic, (2,), (1,), (1,), (3,))
    api, asked = an_api(broker)
    request = FindCoordinatorRequest(key="g", key_type=key_type, coordinator_keys=["g", "h"])
    answer = await broker.ask(api, version, request)
    if version >= 4:
        found = [(c["nodeId"], c["host"], c["port"]) for c in answer["coordinators"]]
        assert found == [(3, "host3", 9003), (2, "host2", 9002)]
        assert {(c["errorCode"], c["errorMessage"]) for c in answer["coordinators"]} == {(0, "")}
    else:
        assert (answer["nodeId"], answer["host"], answer["port"]) == (3, "host3", 9003)
        assert (answer["errorCode"], answer["errorMessage"]) == (0, "NONE")
    assert asked.topics == []


async def test_a_leader_without_the_asked_listener_is_not_named() -> None:
    """Nobody on this listener could reach it."""
    broker = CoordinatingBroker()
    broker.create(OFFSETS, (3,))
    api, _ = an_api(broker)
    answer = await broker.ask(api, 6, FindCoordinatorRequest(coordinator_keys=["g"]), "INNER")
    (found,) = answer["coordinators"]
    assert (found["errorCode"], found["nodeId"]) == (15, -1)


@pytest.mark.parametrize(("version", "code"), [(4, 42), (5, 42), (6, 15)])
async def test_a_share_group_has_no_coordinator(version: int, code: int) -> None:
    """As a Kafka answers whose share groups are off; nothing is created for it."""
    broker = CoordinatingBroker()
    api, asked = an_api(broker)
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=["g"])
    (found,) = (await broker.ask(api, version, request))["coordinators"]
    assert (found["errorCode"], found["errorMessage"]) == (code, "")
    assert asked.topics == []


@pytest.mark.parametrize("version", range(1, 7))
async def test_another_type_of_key_fails_the_whole_request(version: int) -> None:
    """With the code's own text for every key."""
    broker = CoordinatingBroker()
    api, _ = an_api(broker)
    request = FindCoordinatorRequest(key_type=3, key="g", coordinator_keys=["g"])
    with pytest.raises(ApiError) as refused:
        await broker.ask(api, version, request)
    told = error_response(10, request, version, refused.value.error)
    one = told.coordinators[0] if version >= 4 else told
    assert (one.error_code, one.node_id, one.port) == (42, -1, -1)
    assert one.error_message == ErrorCode.INVALID_REQUEST.default_text


@pytest.mark.parametrize(("key_type", "code"), [(GROUP, 30), (TRANSACTION, 53)])
async def test_who_may_not_describe_it_learns_nothing(key_type: int, code: int) -> None:
    """And no topic is created on that account."""
    broker = CoordinatingBroker()
    api, asked = an_api(broker, allowed=False)
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g"])
    (found,) = (await broker.ask(api, 6, request))["coordinators"]
    assert (found["errorCode"], found["nodeId"], asked.topics) == (code, -1, [])


@pytest.mark.parametrize("version", range(6))
async def test_a_coordinator_calls_a_group_it_has_not_met_dead(version: int) -> None:
    """Others refuse; operations are told where they are asked for, and only of what it has."""
    broker = CoordinatingBroker()
    broker.create(OFFSETS, (1,), (2,))
    api = DescribeGroups(broker.coordinators, saying_to_everybody(True))
    request = DescribeGroupsRequest(groups=["h", "g"], include_authorized_operations=True)
    mine, other = (await broker.ask(api, version, request))["groups"]
    assert (mine["errorCode"], mine["groupState"], mine["members"]) == (0, "Dead", [])
    assert (other["errorCode"], other["groupState"]) == (16, "")
    if version >= 3:
        operations = (mine["authorizedOperations"], other["authorizedOperations"])
        assert operations == (328, -(2**31))


async def test_a_group_that_may_not_be_described_is_refused_alike_everywhere() -> None:
    """Whether this broker coordinates it or not."""

    def may(_operation: str, _type: str, name: str) -> bool:
        return name == "seen"

    broker = CoordinatingBroker()
    broker.create(OFFSETS, (1,))
    request = DescribeGroupsRequest(groups=["hidden", "seen"])
    api = DescribeGroups(broker.coordinators, saying_to_everybody(may))
    answer = await broker.ask(api, 5, request)
    assert [group["errorCode"] for group in answer["groups"]] == [30, 0]
