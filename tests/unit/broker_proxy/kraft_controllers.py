"""Controllers of a KRaft quorum in this process, as strict as Kafka 3.9.1's were seen to be."""

from __future__ import annotations

import asyncio
from typing import Any

from bridgehead.admin.config import Address
from bridgehead.admin.errors import ConnectionFailedError
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.allocate_producer_ids import AllocateProducerIdsResponse
from bridgehead.kafka_wire.messages.alter_partition import AlterPartitionResponse
from bridgehead.kafka_wire.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from bridgehead.kafka_wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from bridgehead.kafka_wire.messages.describe_quorum import (
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from bridgehead.kafka_wire.messages.envelope import EnvelopeResponse
from broker_proxy.migration.quorum import Quorum, QuorumConnection, Voter

CLUSTER_ID = "vE7MkgXnRpOqZe0B1Vr5Vg"
LISTENER = "BETWEEN"
FINALIZED_LEVEL = 20
_METADATA_TOPIC = "__cluster_metadata"
_RESERVED = 100  # UUIDs below this number are reserved


class Controllers:
    """A quorum of `count` voters, led by `active`. Each request adds a record to the log."""

    def __init__(self, count: int = 1) -> None:
        self.voters = tuple(Voter(3000 + n, Address("127.0.0.1", 9100 + n)) for n in range(count))
        self.active: Voter | None = self.voters[0]
        self.log_end = 40
        self.registrations: list[BrokerRegistrationRequest] = []
        self.heartbeats: list[BrokerHeartbeatRequest] = []
        self.others: list[tuple[ApiKey, Any]] = []
        self.epoch: int | None = None  # of the registered broker
        self.incarnation = b""
        self.has_session = False
        self.permits_stop = True
        self.reply: Any = EnvelopeResponse(b"inner response")

    def connection(self, quorum: Quorum | None = None) -> QuorumConnection:
        """Return a connection to the quorum."""
        security: Any = None
        return QuorumConnection(quorum or Quorum(self.voters), security, self.connect)

    async def connect(self, address: Address, _security: Any, _timeout_s: float) -> Any:
        """Connect as PeerConnection.open does."""
        return _Peer(self, next(voter for voter in self.voters if voter.address == address))

    def forget(self) -> None:
        """Lose the registration, as a controller with an empty log."""
        self.epoch = None

    def respond(self, voter: Voter, key: ApiKey, message: Any) -> Any:
        """Answer a request that arrived at this voter."""
        self.log_end += 1
        is_active = voter is self.active
        match key:
            case ApiKey.BROKER_REGISTRATION:
                return self._registered(message) if is_active else _registration_error(41)
            case ApiKey.BROKER_HEARTBEAT:
                return self._beaten(message) if is_active else BrokerHeartbeatResponse(0, 41)
            case ApiKey.DESCRIBE_QUORUM:
                return self._described(is_active)
        self.others.append((key, message))
        if not is_active:
            return EnvelopeResponse(None, ErrorCode.NOT_CONTROLLER)
        match key:
            case ApiKey.ENVELOPE:
                return self.reply
            case ApiKey.ALTER_PARTITION:
                stale = message.broker_epoch != self.epoch
                error = ErrorCode.STALE_BROKER_EPOCH if stale else ErrorCode.NONE
                return AlterPartitionResponse(0, error)
        return AllocateProducerIdsResponse()

    def _registered(self, message: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        self.registrations.append(message)
        ids = message.log_dirs
        levels = [f for f in message.features if f.name == "metadata.version"]
        accepted = any(
            f.min_supported_version <= FINALIZED_LEVEL <= f.max_supported_version for f in levels
        )
        is_reserved = any(int.from_bytes(directory) < _RESERVED for directory in ids)
        if not message.is_migrating_zk_broker:
            return _registration_error(ErrorCode.BROKER_ID_NOT_REGISTERED)
        if message.cluster_id != CLUSTER_ID:
            return _registration_error(ErrorCode.INCONSISTENT_CLUSTER_ID)
        if LISTENER not in {listener.name for listener in message.listeners}:
            return _registration_error(ErrorCode.INVALID_REGISTRATION)
        if not ids or len(set(ids)) < len(ids) or is_reserved:
            return _registration_error(ErrorCode.INVALID_REGISTRATION)
        if not accepted:
            return _registration_error(ErrorCode.UNSUPPORTED_VERSION)
        if self.has_session and message.incarnation_id != self.incarnation:
            return _registration_error(ErrorCode.DUPLICATE_BROKER_REGISTRATION)
        self.incarnation, self.epoch = message.incarnation_id, self.log_end
        return BrokerRegistrationResponse(broker_epoch=self.epoch)

    def _beaten(self, message: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        self.heartbeats.append(message)
        if self.epoch is None:
            return BrokerHeartbeatResponse(0, ErrorCode.BROKER_ID_NOT_REGISTERED)
        if message.broker_epoch != self.epoch:
            return BrokerHeartbeatResponse(0, ErrorCode.STALE_BROKER_EPOCH)
        self.has_session = True
        is_caught_up = message.current_metadata_offset >= self.epoch
        return BrokerHeartbeatResponse(
            is_caught_up=is_caught_up,
            is_fenced=not is_caught_up or message.want_fence,
            should_shut_down=message.want_shut_down and self.permits_stop,
        )

    def _described(self, is_active: bool) -> DescribeQuorumResponse:
        error = ErrorCode.NONE if is_active else ErrorCode.NOT_LEADER_OR_FOLLOWER
        partition = PartitionData(0, error, high_watermark=self.log_end)
        return DescribeQuorumResponse(topics=[TopicData(_METADATA_TOPIC, [partition])])


def _registration_error(code: int) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(0, code)


class _Peer:
    """A PeerConnection to one voter."""

    def __init__(self, controllers: Controllers, voter: Voter) -> None:
        self._controllers = controllers
        self._voter = voter
        self.is_open = True
        self.api_ranges = {ApiKey.CREATE_TOPICS: (0, 7)}
        self._closed = asyncio.Event()
        self._frozen: asyncio.Event | None = None

    async def request(self, key: ApiKey, message: Any, _timeout_s: float) -> Any:
        if self._frozen is not None:
            self._frozen.set()
            await self._closed.wait()
        if not self.is_open:
            raise ConnectionFailedError("closed")
        return self._controllers.respond(self._voter, key, message)

    def close(self) -> None:
        self.is_open = False
        self._closed.set()

    def freeze(self, frozen: asyncio.Event) -> None:
        """Answer nothing from now on; set `frozen` when the first request arrives."""
        self._frozen = frozen
