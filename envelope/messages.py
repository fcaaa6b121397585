"""The messages of the channel. The wire form is proto/envelope.proto."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class RequestIdentity(NamedTuple):
    """Identifies a write request across resends, for exactly-once execution (docs/adr/0003)."""

    broker_id: int
    incarnation: str
    sequence: int


@dataclass(frozen=True, slots=True)
class Envelope:
    """A client's request on its way to the controller. KIP-590 §EnvelopeRequest.

    `request_header` and `request_data` are the client's own bytes. `principal` is serialized;
    `client_address` has 4 or 16 bytes. `remaining_ms` is how long the broker still waits.
    """

    identity: RequestIdentity
    request_header: bytes
    request_data: bytes
    principal: bytes
    client_address: bytes
    listener_name: str
    security_protocol: str
    dialect: str
    remaining_ms: int
    request_id: str
    attempt: int = 1
    made_by_broker: bool = False  # for example an automatic topic creation

    @property
    def api_key(self) -> int:
        """The inner request's key, the first field of every header version."""
        return int.from_bytes(self.request_header[:2], signed=True)


@dataclass(frozen=True, slots=True)
class EnvelopeReply:
    """The reply to an Envelope. `response_data` is None if `error_code`, the outer error, is set.

    `zxid` is the zxid of the commit for a write, otherwise of the image. `throttle_ms` is not on
    the wire. As in Kafka, other brokers read it from the response, if its version has the field.
    """

    error_code: int
    response_data: bytes | None
    zxid: int
    throttle_ms: int = 0


@dataclass(frozen=True, slots=True)
class MetadataUpdate:
    """One UpdateMetadata. See proto/envelope.proto for the flags."""

    controller_id: int
    controller_epoch: int
    zxid: int
    update_metadata: bytes  # body of Kafka's UpdateMetadata request, version 8
    starts_full_image: bool
    complete: bool


# A controller's lowest and highest version of each API.
ApiRanges = Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message of a broker on a channel."""

    broker_id: int
    incarnation: str


class ChannelClosedError(Exception):
    """The channel broke before the reply. The request may have been executed."""
