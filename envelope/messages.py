"""The Envelope and its answer as our code sees them. The wire form is proto/envelope.proto."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class RequestIdentity(NamedTuple):
    """Who a write request is, on every resend: exactly-once rests on it (docs/adr/0003)."""

    broker_id: int
    incarnation: str
    sequence: int


@dataclass(frozen=True, slots=True)
class Envelope:
    """A client's request on its way to the controller. KIP-590 §EnvelopeRequest.

    `request_header` and `request_data` are the client's own bytes. `client_host` is the raw
    address, 4 or 16 bytes. `remaining_ms` is what the broker will still wait.
    """

    identity: RequestIdentity
    broker_epoch: int
    request_header: bytes
    request_data: bytes
    principal: bytes
    client_host: bytes
    listener_name: str
    security_protocol: str
    dialect: str
    remaining_ms: int
    request_id: str
    attempt: int = 1
    client_software_name: str = ""
    client_software_version: str = ""
    made_by_broker: bool = False  # the broker's own request: an internal topic, an auto-creation

    @property
    def api_key(self) -> int:
        """The inner request's: every version of a header begins with it."""
        return int.from_bytes(self.request_header[:2], signed=True)


@dataclass(frozen=True, slots=True)
class EnvelopeAnswer:
    """What came back. `error_code` is the outer error; `response_data` is None beside one.

    `zxid` is the transaction this answer stands for: the commit of a write, else the image's.
    `throttle_ms` never goes on the wire: another node's broker learns of it from the answer alone,
    where the answer's version can say it, as Kafka's does.
    """

    error_code: int
    response_data: bytes | None
    zxid: int
    throttle_ms: int = 0


@dataclass(frozen=True, slots=True)
class MetadataUpdate:
    """One UpdateMetadata push, stamped. See proto/envelope.proto for the meaning of the flags."""

    controller_id: int
    controller_epoch: int
    zxid: int
    update_metadata: bytes  # body of Kafka's UpdateMetadata request, version 8
    starts_full_image: bool
    complete: bool


# What a controller can be asked: lowest and highest version by API key.
ApiRanges = Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Hello:
    """What a broker says first on a channel."""

    broker_id: int
    incarnation: str
    broker_epoch: int
    cluster_id: str


class ChannelClosedError(Exception):
    """The channel broke before the answer came. Not definite: it may have been executed."""
