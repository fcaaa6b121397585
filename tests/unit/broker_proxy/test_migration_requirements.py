"""What a KRaft controller requires of a broker that migrates. Each requirement finds a bug."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import encode_request
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import RequestHeader, encode_request_header
from bridgehead.kafka_wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from bridgehead.kafka_wire.messages.broker_registration import Listener
from bridgehead.kafka_wire.messages.envelope import EnvelopeResponse
from bridgehead.kafka_wire.messages.leader_and_isr import LeaderAndIsrRequest
from bridgehead.kafka_wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from bridgehead.kafka_wire.primitives import ELEMENTS_MAX
from broker_proxy.apis.migration.kraft_requests import FULL, LeaderAndIsr, UpdateMetadata
from broker_proxy.client_request import ClosedWithoutResponseError
from broker_proxy.metadata.cache import MetadataCache
from broker_proxy.migration.lifecycle import BrokerLifecycle, Identity, Intervals
from broker_proxy.migration.quorum import NoActiveControllerError, Quorum, QuorumConnection
from chaos.bugs import migration
from chaos.bugs.bug import Bug, Composition
from cluster_model.principal import KafkaPrincipal
from envelope.messages import ChannelClosedError, Envelope, RequestIdentity
from envelope.principal_serde import DefaultPrincipalSerde
from node.collaborators import PRODUCTION, Collaborators
from tests.unit.broker_proxy.client_requests import a_request, authorize_by
from tests.unit.broker_proxy.kraft_controllers import (
    CLUSTER_ID,
    FINALIZED_LEVEL,
    LISTENER,
    Controllers,
)

Check = Callable[[Collaborators], Awaitable[None]]
CHECKS: dict[str, Check] = {}
FINDS: dict[str, Check] = {}  # by the name of the bug
BROKER_ID = 7
INTERVALS = Intervals(heartbeat_s=0.02, session_s=0.4)
LIMIT_S = 1.0
IDENTITY = Identity(
    broker_id=BROKER_ID,
    cluster_id=CLUSTER_ID,
    incarnation_id=bytes(range(100, 116)),
    listeners=(Listener("CLIENTS", "b7", 9192, 0), Listener(LISTENER, "b7", 9193, 2)),
    rack="r7",
    log_dirs=(bytes(range(16)), bytes(range(1, 17))),
    level="3.8-IV0",
    feature_level=FINALIZED_LEVEL,
)


def finds(*bugs: str) -> Callable[[Check], Check]:
    """Mark a check of the production parts, which fails with each of these bugs."""

    def mark(check: Check) -> Check:
        CHECKS[check.__name__] = check
        FINDS.update(dict.fromkeys(bugs, check))
        return check

    return mark


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not condition():
            await asyncio.sleep(0.001)


class Running:
    """A broker's lifecycle that runs against controllers."""

    def __init__(self, parts: Collaborators, controllers: Controllers) -> None:
        quorum = Quorum(controllers.voters)
        self.lifecycle: BrokerLifecycle = parts.lifecycle(
            quorum, controllers.connection(quorum), INTERVALS
        )

    async def __aenter__(self) -> BrokerLifecycle:
        self.lifecycle.start(IDENTITY)
        return self.lifecycle

    async def __aexit__(self, *_: object) -> None:
        await self.lifecycle.stop()


@finds(
    "registers_as_kraft_broker",
    "registers_in_other_cluster",
    "registers_without_listeners",
    "registers_without_log_dirs",
)
async def registers(parts: Collaborators) -> None:
    controllers = Controllers()
    async with Running(parts, controllers):
        await until(lambda: controllers.epoch is not None)


@finds("registers_with_all_levels")
async def registers_its_level(parts: Collaborators) -> None:
    """The controller compares the levels of all brokers by their lowest and highest level."""
    controllers = Controllers()
    async with Running(parts, controllers):
        await until(lambda: controllers.epoch is not None)
    (feature,) = controllers.registrations[0].features
    assert feature.min_supported_version == feature.max_supported_version == FINALIZED_LEVEL


@finds("registers_as_new_process", "never_registers_again")
async def registers_again(parts: Collaborators) -> None:
    """With the same incarnation, because the controller still has a session of this broker."""
    controllers = Controllers()
    async with Running(parts, controllers) as lifecycle:
        await until(lambda: not lifecycle.is_fenced)
        controllers.forget()
        await until(lambda: controllers.epoch is not None and lifecycle.epoch == controllers.epoch)
        await until(lambda: not lifecycle.is_fenced)
        controllers.epoch = 10_000  # another registration, as after UnregisterBroker
        await until(lambda: controllers.epoch not in (None, 10_000))


@finds("heartbeats_without_offset", "sends_no_heartbeats")
async def is_unfenced(parts: Collaborators) -> None:
    controllers = Controllers()
    async with Running(parts, controllers) as lifecycle:
        await until(lambda: not lifecycle.is_fenced)
        await until(lambda: len(controllers.heartbeats) > 3)
        assert controllers.heartbeats[0].want_fence, "the first heartbeat, as in Kafka"
        assert not controllers.heartbeats[-1].want_fence


@finds("heartbeats_with_first_offset")
async def follows_the_log(parts: Collaborators) -> None:
    """Other brokers' controlled shutdown waits until this broker reports a later offset."""
    controllers = Controllers()
    async with Running(parts, controllers) as lifecycle:
        await until(lambda: not lifecycle.is_fenced)
        controllers.log_end += 500
        end = controllers.log_end
        await until(lambda: controllers.heartbeats[-1].current_metadata_offset >= end - 1)
        assert controllers.heartbeats[-1].current_metadata_offset < controllers.log_end


@finds("stops_without_permission")
async def asks_before_it_stops(parts: Collaborators) -> None:
    controllers = Controllers()
    controllers.permits_stop = False
    async with Running(parts, controllers) as lifecycle:
        await until(lambda: not lifecycle.is_fenced)
        leaving = asyncio.create_task(lifecycle.leave(LIMIT_S))
        await until(lambda: sum(beat.want_shut_down for beat in controllers.heartbeats) > 1)
        assert not leaving.done()
        controllers.permits_stop = True
        assert await leaving


@finds("stops_only_with_permission")
async def stops_without_permission(parts: Collaborators) -> None:
    controllers = Controllers()
    controllers.permits_stop = False
    async with Running(parts, controllers) as lifecycle:
        await until(lambda: not lifecycle.is_fenced)
        async with asyncio.timeout(LIMIT_S):
            assert not await lifecycle.leave(0.05)


@finds("stays_at_first_voter")
async def follows_the_leader(parts: Collaborators) -> None:
    controllers = Controllers(count=3)
    controllers.active = controllers.voters[2]
    async with Running(parts, controllers) as lifecycle:
        await until(lambda: not lifecycle.is_fenced)
        controllers.active = controllers.voters[1]
        before = len(controllers.heartbeats)
        await until(lambda: len(controllers.heartbeats) > before + 2)


# --- Forwarding --------------------------------------------------------------------------------


def envelope(key: ApiKey, body: bytes, *, is_as_broker: bool) -> Envelope:
    header = RequestHeader(key, 3, 4711, "the-client")
    return Envelope(
        identity=RequestIdentity(BROKER_ID, "x", 5),
        request_header=encode_request_header(header),
        request_data=body,
        principal=DefaultPrincipalSerde().serialize(KafkaPrincipal("User", "alice")),
        client_address=bytes([10, 1, 2, 3]),
        listener_name="CLIENTS",
        security_protocol="PLAINTEXT",
        dialect="shipped",
        remaining_ms=900,
        request_id="r",
        made_by_broker=is_as_broker,
        is_as_broker=is_as_broker,
    )


def link_to(parts: Collaborators, controllers: Controllers) -> Any:
    quorum = Quorum(controllers.voters)
    return parts.kraft_link(
        controllers.connection(quorum),
        controllers.connection(quorum),
        serde=DefaultPrincipalSerde(),
        broker_epoch=lambda: controllers.epoch or 0,
    )


@finds("forwards_as_itself", "hides_client_addresses")
async def wraps_clients_requests(parts: Collaborators) -> None:
    controllers = Controllers()
    sent = envelope(ApiKey.CREATE_ACLS, b"the client's body", is_as_broker=False)
    reply = await link_to(parts, controllers).send(sent)
    assert (reply.error_code, reply.response_data) == (0, b"inner response")
    ((key, message),) = controllers.others
    assert key is ApiKey.ENVELOPE
    assert message.request_data == sent.request_header + b"the client's body"
    assert message.request_principal == bytes.fromhex("0000055573657206616c6963650000")
    assert message.client_host_address == bytes([10, 1, 2, 3])


@finds("wraps_its_own_requests", "keeps_zookeepers_epoch")
async def sends_own_requests(parts: Collaborators) -> None:
    controllers = Controllers()
    controllers.epoch = 77
    body = encode_request(ApiKey.ALTER_PARTITION, 3, AlterPartitionRequest(BROKER_ID, 1234, []))
    sent = envelope(ApiKey.ALTER_PARTITION, body, is_as_broker=True)
    reply = await link_to(parts, controllers).send(sent)
    ((key, message),) = controllers.others
    assert key is ApiKey.ALTER_PARTITION
    assert message.broker_epoch == 77
    assert reply.error_code == 0
    assert reply.response_data is not None
    assert int.from_bytes(reply.response_data[:4]) == 4711, "the request's correlation id"


# --- The controller's requests -----------------------------------------------------------------


def update(**fields: Any) -> UpdateMetadataRequest:
    named: dict[str, Any] = {
        "controller_id": 3000,
        "is_kraft_controller": True,
        "controller_epoch": 6,
        "broker_epoch": 50,
        "live_brokers": [UpdateMetadataBroker(BROKER_ID)],
    }
    return UpdateMetadataRequest(**{**named, **fields})


def topic(name: str, number: int, *partitions: int) -> UpdateMetadataTopicState:
    states = [
        UpdateMetadataPartitionState("", partition, 1, BROKER_ID, 3, [BROKER_ID], 2, [BROKER_ID])
        for partition in partitions
    ]
    return UpdateMetadataTopicState(name, bytes([number]) * 16, states)


class Broker:
    """A broker with the KRaft epoch 50 that has seen the controller epoch 5."""

    def __init__(self, parts: Collaborators, *, is_allowed: bool = True) -> None:
        self.cache = MetadataCache(lambda: None)
        self.cache.controller_epoch_seen(5)
        rights: list[tuple[str, str, str]] = []
        self.rights = rights

        def rule(*right: str) -> bool:
            rights.append(cast(Any, right))
            return is_allowed

        self.requests = parts.kraft_requests(
            (LISTENER,), lambda _: authorize_by(rule), self.cache, lambda: 50
        )
        self.metadata = UpdateMetadata(self.requests)

    async def error(self, listener: str = LISTENER, **fields: Any) -> int:
        request = a_request(ApiKey.UPDATE_METADATA, 8, listener_name=listener)
        return (await self.metadata.handle(request, update(**fields))).error_code


@finds("accepts_old_broker_epochs", "rejects_unknown_broker_epochs")
async def checks_the_broker_epoch(parts: Collaborators) -> None:
    broker = Broker(parts)
    assert await broker.error(broker_epoch=49) == ErrorCode.STALE_BROKER_EPOCH
    assert await broker.error(broker_epoch=-1) == ErrorCode.NONE
    assert await broker.error(broker_epoch=51) == ErrorCode.NONE


@finds("accepts_old_controllers")
async def checks_the_controller_epoch(parts: Collaborators) -> None:
    broker = Broker(parts)
    assert await broker.error(controller_epoch=7) == ErrorCode.NONE
    leaders = LeaderAndIsr(broker.requests, BROKER_ID, None)
    message = LeaderAndIsrRequest(3000, is_kraft_controller=True, controller_epoch=6)
    response = await leaders.handle(
        a_request(ApiKey.LEADER_AND_ISR, 7, listener_name=LISTENER), message
    )
    assert response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH


@finds("accepts_strangers_as_controller")
async def needs_cluster_action(parts: Collaborators) -> None:
    broker = Broker(parts, is_allowed=False)
    assert await broker.error() == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert broker.rights == [("CLUSTER_ACTION", "CLUSTER", "kafka-cluster")]
    assert broker.cache.controller_id == -1


@finds("serves_controllers_everywhere")
async def serves_one_listener(parts: Collaborators) -> None:
    with pytest.raises(ClosedWithoutResponseError):
        await Broker(parts).error("CLIENTS")


@finds("serves_any_controller")
async def serves_kraft_only(parts: Collaborators) -> None:
    with pytest.raises(ClosedWithoutResponseError):
        await Broker(parts).error(is_kraft_controller=False)


@finds("keeps_what_is_gone")
async def replaces_all(parts: Collaborators) -> None:
    broker = Broker(parts)
    await broker.error(topic_states=[topic("gone", 1, 0), topic("kept", 2, 0, 1)], type=1)
    assert sorted(broker.cache.topics) == ["gone", "kept"]
    await broker.error(
        topic_states=[topic("kept", 2, 1), topic("new", 3, *range(2_500))], type=FULL
    )
    assert {name: len(t.partitions) for name, t in broker.cache.topics.items()} == {
        "kept": 1,
        "new": 2_500,
    }
    assert broker.cache.controller_is_kraft


@pytest.mark.parametrize("name", CHECKS)
async def test_a_broker_meets_the_requirement(name: str) -> None:
    await CHECKS[name](PRODUCTION)


FOUND_HERE = [bug for bug in migration.BUGS if bug.name in FINDS]


@pytest.mark.parametrize("bug", FOUND_HERE, ids=lambda bug: bug.name)
async def test_the_requirement_finds_the_bug(bug: Bug) -> None:
    config: Any = None
    faulty = bug.apply(Composition(config, PRODUCTION)).collaborators
    with pytest.raises((AssertionError, TimeoutError, pytest.fail.Exception)):
        await FINDS[bug.name](faulty)


def test_every_requirement_finds_a_bug() -> None:
    assert {check.__name__ for check in FINDS.values()} == set(CHECKS)
    assert {bug.name for bug in FOUND_HERE} == set(FINDS)


async def test_an_own_request_may_have_any_number_of_elements() -> None:
    """After the stop of a broker, a leader of many partitions changes all their ISRs."""
    controllers = Controllers()
    controllers.epoch = 77
    rows = [PartitionData(n, 3, [BrokerState(7)], [], 0, 4) for n in range(ELEMENTS_MAX // 2 + 1)]
    message = AlterPartitionRequest(BROKER_ID, 1, [TopicData(bytes(16), "", rows)])
    body = encode_request(ApiKey.ALTER_PARTITION, 3, message)
    sent = envelope(ApiKey.ALTER_PARTITION, body, is_as_broker=True)
    assert (await link_to(PRODUCTION, controllers).send(sent)).error_code == 0


async def test_an_envelope_is_sent_again_to_the_next_controller() -> None:
    """NOT_CONTROLLER, and a lost connection, make the forwarding manager send it again."""
    controllers = Controllers(count=2)
    link = link_to(PRODUCTION, controllers)
    sent = envelope(ApiKey.CREATE_ACLS, b"", is_as_broker=False)
    controllers.active = controllers.voters[1]
    with pytest.raises(ChannelClosedError):
        await link.send(sent)
    assert (await link.send(sent)).response_data == b"inner response"
    controllers.reply = EnvelopeResponse(None, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert (await link.send(sent)).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_a_rejected_registration_is_explained_once(caplog: pytest.LogCaptureFixture) -> None:
    controllers = Controllers()
    broken = Composition(cast(Any, None), PRODUCTION)
    bug = next(bug for bug in migration.BUGS if bug.name == "registers_in_other_cluster")
    async with Running(bug.apply(broken).collaborators, controllers) as lifecycle:
        await until(lambda: len(controllers.registrations) > 3)
        problem = lifecycle.problem
    assert problem is not None
    assert "INCONSISTENT_CLUSTER_ID" in problem
    assert CLUSTER_ID in problem
    assert [record.message for record in caplog.records] == [problem]


async def test_requests_at_a_frozen_controller_fail_when_another_one_is_active() -> None:
    """Then they are sent to that one; they do not wait until request.timeout.ms."""
    controllers = Controllers(count=2)
    quorum = Quorum(controllers.voters)
    frozen = asyncio.Event()
    first, _ = controllers.voters

    async def connect(address: Any, security: Any, timeout_s: float) -> Any:
        peer = await controllers.connect(address, security, timeout_s)
        if address == first.address:
            peer.freeze(frozen)
        return peer

    security: Any = None
    connection = QuorumConnection(quorum, security, connect)
    lifecycle = QuorumConnection(quorum, security, controllers.connect)
    waiting = asyncio.create_task(
        connection.request(ApiKey.ENVELOPE, None, 60, lambda _response: False)
    )
    await asyncio.wait_for(frozen.wait(), LIMIT_S)
    controllers.active = controllers.voters[1]
    quorum.is_not_active(first)
    await lifecycle.request(ApiKey.ENVELOPE, None, LIMIT_S, lambda _response: False)
    lifecycle.confirm()
    with pytest.raises(NoActiveControllerError):
        await asyncio.wait_for(waiting, LIMIT_S)
    assert await connection.request(ApiKey.ENVELOPE, None, LIMIT_S, lambda _response: False)


async def test_a_controller_without_the_right_is_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = Broker(PRODUCTION, is_allowed=False)
    for _ in range(3):
        await broker.error()
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "User:ANONYMOUS lacks CLUSTER_ACTION" in warning
    assert "super.users" in warning


async def test_a_broker_stops_at_once_if_no_controller_responds() -> None:
    controllers = Controllers()
    async with Running(PRODUCTION, controllers) as lifecycle:
        await until(lambda: not lifecycle.is_fenced)
        controllers.active = None
        async with asyncio.timeout(LIMIT_S):
            assert not await lifecycle.leave(60)
