"""BrokerRegistration, key 62, versions 0 to 4; flexible from 0.

Version notes:
    1: The request adds `is_migrating_zk_broker`.
    2: The request adds `log_dirs`.
    3: The request adds `previous_broker_epoch`.
    4: Same fields as 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    Array,
    wire,
)


@dataclass(slots=True)
class Listener:
    """An element of `listeners` of the request."""

    name: str = wire(STRING)
    host: str = wire(STRING)
    port: int = wire(UINT16)
    security_protocol: int = wire(INT16)


@dataclass(slots=True)
class Feature:
    """An element of `features` of the request."""

    name: str = wire(STRING)
    min_supported_version: int = wire(INT16)
    max_supported_version: int = wire(INT16)


@dataclass(slots=True)
class BrokerRegistrationRequest:
    """The request."""

    broker_id: int = wire(INT32)
    cluster_id: str = wire(STRING)
    incarnation_id: bytes = wire(UUID)
    listeners: list[Listener] = wire(Array(Listener))
    features: list[Feature] = wire(Array(Feature))
    rack: str | None = wire(STRING, nullable="0+")
    is_migrating_zk_broker: bool = wire(BOOL, versions="1+")
    log_dirs: list[bytes] = wire(Array(UUID), versions="2+")
    previous_broker_epoch: int = wire(INT64, versions="3+", default=-1)


@dataclass(slots=True)
class BrokerRegistrationResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
    broker_epoch: int = wire(INT64, default=-1)
