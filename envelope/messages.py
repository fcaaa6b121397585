"""The messages of the channel. proto/envelope.proto defines their wire form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bridgehead.kafka_wire.messages.update_metadata import UpdateMetadataRequest


class RequestIdentity(NamedTuple):
    """Identifies a write request across resends, for exactly-once execution (docs/adr/0003)."""

    broker_id: int
    incarnation: str
    sequence: int


@dataclass(frozen=True, slots=True)
class Envelope:
    """A client's request on its way to the controller. KIP-590 §EnvelopeRequest.

    `request_header` and `request_data` are the client's own bytes. If the broker has answered some
    resources of a config request itself, `request_data` has only the others. `principal` is
    serialized; `client_address` has 4 or 16 bytes. `remaining_ms` is how long the broker still
    waits for the reply.
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
    is_as_broker: bool = False  # `principal` is the broker's own; not on the wire

    @property
    def api_key(self) -> int:
        """The inner request's API key: the first field of a header, in every header version."""
        return int.from_bytes(self.request_header[:2], signed=True)


@dataclass(frozen=True, slots=True)
class EnvelopeReply:
    """The reply to an Envelope. If the outer error `error_code` is not 0, `response_data` is None.

    For a write, `zxid` is the zxid of the last commit that its response waited for. For other
    requests it is the zxid of the controller's image. Only the controller's own broker gets
    `throttle_ms`, which is not on the wire. As in Kafka, other brokers take the throttle time from
    the response, if its version has that field.
    """

    error_code: int
    response_data: bytes | None
    zxid: int
    throttle_ms: int = 0


@dataclass(frozen=True, slots=True)
class MetadataUpdate:
    """One UpdateMetadata request. proto/envelope.proto explains the flags."""

    controller_id: int
    controller_epoch: int
    zxid: int
    update_metadata: bytes  # body of Kafka's UpdateMetadata request, version 8
    starts_full_image: bool
    complete: bool
    between_parts: bool = False
    # The decoded body; None in an update that arrived over a channel.
    message: UpdateMetadataRequest | None = field(default=None, compare=False, repr=False)


# The lowest and highest version of each API that a controller supports.
ApiRanges = Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message of a broker on a channel."""

    broker_id: int
    incarnation: str


class ChannelClosedError(Exception):
    """The channel broke before the reply. The request may have been executed."""
