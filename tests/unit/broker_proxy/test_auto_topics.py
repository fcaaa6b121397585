"""Automatic creation of topics: principal, request, concurrency, and the client's error."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bridgehead.kafka_wire.codec import decode_request, encode_response
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import decode_request_header, encode_response_header
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker_proxy.apis.admin.metadata import Metadata
from broker_proxy.client_request import ClientRequest
from broker_proxy.forwarding.auto_topics import IN_FLIGHT_MAX, AutoTopics
from broker_proxy.forwarding.manager import Forwarded
from broker_proxy.forwarding.retry import NextStep
from cluster_model.configs.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.principal import KafkaPrincipal
from event_log.events import Event, TopicsAutoCreated
from tests.unit.broker_proxy.client_requests import a_client, a_request, authorize_every_client
from tests.unit.broker_proxy.coordinating_broker import CoordinatingBroker

ALICE = KafkaPrincipal("User", "alice")
BROKER = KafkaPrincipal("User", "broker")
ABSENT, CREATED = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE


class Setup:
    """AutoTopics of broker 2, with a scripted controller."""

    def __init__(self, *, waits: bool, is_below: bool = False, **properties: str) -> None:
        self.events: list[Event] = []
        self.sent: list[tuple[ClientRequest, CreateTopicsRequest]] = []
        self.error = ErrorCode.NONE
        self.step = NextStep.RELAY
        self.responses = asyncio.Event()
        self.responses.set()
        self.written: list[tuple[ClientRequest, Any]] = []
        named = {name.replace("_", "."): value for name, value in properties.items()}
        static = BrokerConfig.from_properties(
            {"broker.id": "2", "zookeeper.connect": "h:1", **named}
        )
        broker = a_client(principal=BROKER, client_id="2")
        self.topics = AutoTopics(
            self._forward,
            lambda: EffectiveBrokerConfig.of(static),
            waits=lambda: waits,
            write_directly=self._write if is_below else None,
            broker=broker,
            log=self,
        )

    def append(self, event: Event) -> None:
        self.events.append(event)

    def flush(self) -> None:
        pass

    async def _write(self, request: ClientRequest, message: Any) -> tuple[Any, int]:
        self.written.append((request, message))
        if self.step is NextStep.TIMED_OUT:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT)
        results = [CreatableTopicResult(t.name, error_code=self.error) for t in message.topics]
        return CreateTopicsResponse(topics=results), 7

    async def _forward(self, request: ClientRequest, body: bytes) -> Forwarded:
        header, _ = decode_request_header(request.header_bytes)
        dialect = request.client.dialect
        message = decode_request(19, header.api_version, body, dialect=dialect)
        self.sent.append((request, message))
        await self.responses.wait()
        if self.step is not NextStep.RELAY:
            return Forwarded(self.step, None, 0, None)
        results = [CreatableTopicResult(t.name, error_code=self.error) for t in message.topics]
        response = encode_response(19, header.api_version, CreateTopicsResponse(topics=results))
        head = encode_response_header(19, header.api_version, header.correlation_id)
        return Forwarded(NextStep.RELAY, head + response, 7, None)


def of_alice() -> ClientRequest:
    return a_request(3, 12, principal=ALICE)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_forwarding_broker_creates_with_the_clients_principal_and_does_not_wait() -> None:
    setup = Setup(waits=False, num_partitions="4", default_replication_factor="2")
    setup.responses.clear()
    assert await setup.topics.create_for_client(of_alice(), ["a", "b"]) == {
        "a": ABSENT,
        "b": ABSENT,
    }
    await settle()
    ((request, message),) = setup.sent
    assert (request.header.api_key, request.header.api_version) == (19, 7)
    assert (request.header.client_id, request.header.correlation_id) == ("c", 9)
    assert (request.client.principal, request.request_id) == (ALICE, "r.topics")
    shapes = [(t.name, t.num_partitions, t.replication_factor, t.configs) for t in message.topics]
    assert shapes == [("a", 4, 2, []), ("b", 4, 2, [])]
    assert (message.timeout_ms, message.validate_only) == (30_000, False)
    assert setup.events == [TopicsAutoCreated("r.topics", "r", "User:alice", ["a", "b"])]


@pytest.mark.parametrize(
    ("error", "outcomes"),
    [
        (ErrorCode.REQUEST_TIMED_OUT, CREATED),
        (ErrorCode.TOPIC_ALREADY_EXISTS, CREATED),
        (ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.INVALID_REPLICATION_FACTOR),
        (ErrorCode.POLICY_VIOLATION, ErrorCode.POLICY_VIOLATION),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
async def test_the_controllers_broker_waits_for_the_outcome(
    error: ErrorCode, outcomes: ErrorCode
) -> None:
    setup = Setup(waits=True)
    setup.error = error
    assert await setup.topics.create_for_client(of_alice(), ["a"]) == {"a": outcomes}
    ((request, message),) = setup.sent
    assert (request.header.api_version, message.timeout_ms) == (5, 0)


@pytest.mark.parametrize(
    ("step", "outcomes"),
    [(NextStep.TIMED_OUT, ABSENT), (NextStep.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR)],
)
async def test_a_creation_without_a_response_is_not_reported_as_created(
    step: NextStep, outcomes: ErrorCode
) -> None:
    setup = Setup(waits=True)
    setup.step = step
    assert await setup.topics.create_for_client(of_alice(), ["a"]) == {"a": outcomes}


async def test_only_one_creation_of_a_topic_name_is_in_flight() -> None:
    setup = Setup(waits=True)
    setup.responses.clear()
    first = asyncio.ensure_future(setup.topics.create_for_client(of_alice(), ["a", "a"]))
    await settle()
    outcomes = asyncio.ensure_future(setup.topics.create_for_client(of_alice(), ["a", "b"]))
    await settle()
    assert [[t.name for t in message.topics] for _, message in setup.sent] == [["a"], ["b"]]
    setup.responses.set()
    assert await first == {"a": CREATED}
    assert await outcomes == {"a": ABSENT, "b": CREATED}
    await setup.topics.create_for_client(of_alice(), ["a"])
    assert len(setup.sent) == 3


async def test_concurrent_creations_are_bounded() -> None:
    setup = Setup(waits=False)
    setup.responses.clear()
    names = [f"t{n}" for n in range(IN_FLIGHT_MAX + 5)]
    assert set((await setup.topics.create_for_client(of_alice(), names)).values()) == {ABSENT}
    assert (await setup.topics.create_for_client(of_alice(), ["more"])) == {"more": ABSENT}
    await settle()
    assert [len(message.topics) for _, message in setup.sent] == [IN_FLIGHT_MAX]


async def test_a_forwarding_broker_waits_for_the_outcome_in_the_drafted_dialect() -> None:
    setup = Setup(waits=False)
    request = a_request(3, 12, principal=ALICE, dialect="drafted")
    setup.error = ErrorCode.INVALID_REPLICATION_FACTOR
    rejected = {"a": ErrorCode.INVALID_REPLICATION_FACTOR}
    assert await setup.topics.create_for_client(request, ["a"]) == rejected
    setup.topics.create_internal(request, "__consumer_offsets")
    assert not await setup.topics.internal_created("__consumer_offsets")
    setup.error = ErrorCode.NONE
    setup.topics.create_internal(request, "__consumer_offsets")
    assert await setup.topics.internal_created("__consumer_offsets")


@pytest.mark.parametrize(
    ("dialect", "name", "flag"),
    [
        ("drafted", "__consumer_offsets", True),
        ("drafted", "orders", False),
        ("shipped", "__consumer_offsets", None),
    ],
)
async def test_a_brokers_internal_topics_have_the_bypass_flag(
    dialect: str, name: str, flag: bool | None
) -> None:
    """KIP-590 §Internal CreateTopicsRequest Routing. The shipped dialect lacks `bypass_policy`."""
    setup = Setup(waits=False)
    request = a_request(3, 12, principal=ALICE, dialect=dialect)
    await setup.topics.create_for_client(request, [name])
    await settle()
    setup.topics.create_internal(request, name)
    await settle()
    by_metadata, by_find_coordinator = (message for _, message in setup.sent)
    assert getattr(by_metadata, "bypass_policy", None) is flag
    assert getattr(by_find_coordinator, "bypass_policy", None) is flag


@pytest.mark.parametrize("waits", [True, False])
async def test_internal_topics_are_created_by_the_brokers_principal_with_their_own_configs(
    waits: bool,
) -> None:
    setup = Setup(waits=waits, offsets_topic_num_partitions="5", transaction_state_log_min_isr="1")
    for name in ("__consumer_offsets", "__transaction_state", "__consumer_offsets"):
        setup.topics.create_internal(of_alice(), name)
    await settle()
    requests = [request for request, _ in setup.sent]
    assert [r.client.principal for r in requests] == [BROKER, BROKER]
    assert [r.header.client_id for r in requests] == ["2", "2"]
    topics = [topic for _, message in setup.sent for topic in message.topics]
    assert [(t.name, t.num_partitions, t.replication_factor) for t in topics] == [
        ("__consumer_offsets", 5, 3),
        ("__transaction_state", 50, 3),
    ]
    assert [{c.name: c.value for c in topic.configs} for topic in topics] == [
        {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        },
        {
            "unclean.leader.election.enable": "false",
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": "1",
            "segment.bytes": "104857600",
        },
    ]


async def test_metadata_creates_no_topic_for_a_client_without_the_create_right() -> None:
    may = authorize_every_client(lambda right, _type, name: right != "CREATE" or name == "allowed")

    setup, broker = Setup(waits=True), CoordinatingBroker()
    broker.create("there", (1,))
    api = Metadata(broker.view, authorize_for=may, auto_create=setup.topics.create_for_client)
    names = ("there", "allowed", "denied")
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    request.allow_auto_topic_creation = True
    response = await broker.call(api, 12, request)
    assert {t["name"]: t["errorCode"] for t in response["topics"]} == {
        "there": 0,
        "allowed": 5,
        "denied": 29,
    }
    assert [[t.name for t in message.topics] for _, message in setup.sent] == [["allowed"]]


async def test_a_concurrently_created_topic_keeps_the_error_of_its_creation() -> None:
    """As in Kafka, the response has LEADER_NOT_AVAILABLE although the topic exists by then."""
    setup, broker = Setup(waits=True), CoordinatingBroker()

    async def create(request: ClientRequest, names: list[str]) -> dict[str, ErrorCode]:
        outcomes = dict(await setup.topics.create_for_client(request, names))
        broker.create("new", (1,))
        return outcomes

    api = Metadata(broker.view, auto_create=create)  # type: ignore[arg-type]
    request = MetadataRequest(topics=[MetadataRequestTopic(name="new")])
    request.allow_auto_topic_creation = True
    for expected in (CREATED, ErrorCode.NONE):
        (topic,) = (await broker.call(api, 12, request))["topics"]
        assert topic["errorCode"] == expected


@pytest.mark.parametrize(
    ("error", "step", "outcome"),
    [
        (ErrorCode.NONE, NextStep.RELAY, CREATED),
        (ErrorCode.TOPIC_ALREADY_EXISTS, NextStep.RELAY, CREATED),
        (ErrorCode.POLICY_VIOLATION, NextStep.RELAY, ErrorCode.POLICY_VIOLATION),
        (ErrorCode.NONE, NextStep.TIMED_OUT, ABSENT),
    ],
)
async def test_only_a_broker_below_the_bridge_creates_topics_itself(
    error: ErrorCode, step: NextStep, outcome: ErrorCode
) -> None:
    """It writes as the client's principal, or as its own, and answers with the outcome."""
    other = Setup(waits=True)
    assert await other.topics.create_for_client(of_alice(), ["a"]) == {"a": CREATED}
    assert (len(other.sent), other.written) == (1, [])
    setup = Setup(waits=True, is_below=True)
    setup.error, setup.step = error, step
    assert await setup.topics.create_for_client(of_alice(), ["a", "b"]) == {
        "a": outcome,
        "b": outcome,
    }
    setup.topics.create_internal(of_alice(), "__consumer_offsets")
    assert await setup.topics.internal_created("__consumer_offsets") is (outcome is CREATED)
    assert setup.sent == []
    assert [request.client.principal for request, _ in setup.written] == [ALICE, BROKER]
    assert all(request.made_by_broker for request, _ in setup.written)
    assert [message.bypass_policy for _, message in setup.written] == [False, False]
    # The next request may create the topic again.
    setup.error, setup.step = ErrorCode.NONE, NextStep.RELAY
    assert await setup.topics.create_for_client(of_alice(), ["a"]) == {"a": CREATED}


async def test_only_the_drafted_dialect_bypasses_the_policy_of_a_direct_write() -> None:
    setup = Setup(waits=True, is_below=True)
    request = a_request(3, 12, principal=ALICE, dialect="drafted")
    setup.topics.create_internal(request, "__consumer_offsets")
    assert await setup.topics.internal_created("__consumer_offsets")
    await setup.topics.create_for_client(request, ["orders"])
    assert [message.bypass_policy for _, message in setup.written] == [True, False]
