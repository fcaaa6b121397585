"""DescribeCluster, key 60, versions 0 to 1; flexible from 0.

Version notes:
    1: The request adds `endpoint_type`. The response adds `endpoint_type`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT8, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class DescribeClusterRequest:
    """The request."""

    include_cluster_authorized_operations: bool = wire(BOOL)
    endpoint_type: int = wire(INT8, versions="1+", default=1)


@dataclass(slots=True)
class DescribeClusterBroker:
    """An element of `brokers` of the response."""

    broker_id: int = wire(INT32)
    host: str = wire(STRING)
    port: int = wire(INT32)
    rack: str | None = wire(STRING, nullable="0+", default=None)


@dataclass(slots=True)
class DescribeClusterResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+", default=None)
    endpoint_type: int = wire(INT8, versions="1+", default=1)
    cluster_id: str = wire(STRING)
    controller_id: int = wire(INT32, default=-1)
    brokers: list[DescribeClusterBroker] = wire(Array(DescribeClusterBroker))
    cluster_authorized_operations: int = wire(INT32, default=-2147483648)
