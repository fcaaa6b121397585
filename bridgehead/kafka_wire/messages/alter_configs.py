"""AlterConfigs, key 33, versions 0 to 2; flexible from 2.

Version notes:
    1: Same fields as 0.
    2: First flexible version.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT8, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class AlterableConfig:
    """An element of `resources.configs` of the request."""

    name: str = wire(STRING)
    value: str | None = wire(STRING, nullable="0+")


@dataclass(slots=True)
class AlterConfigsResource:
    """An element of `resources` of the request."""

    resource_type: int = wire(INT8)
    resource_name: str = wire(STRING)
    configs: list[AlterableConfig] = wire(Array(AlterableConfig))


@dataclass(slots=True)
class AlterConfigsRequest:
    """The request."""

    resources: list[AlterConfigsResource] = wire(Array(AlterConfigsResource))
    validate_only: bool = wire(BOOL)


@dataclass(slots=True)
class AlterConfigsResourceResponse:
    """An element of `responses` of the response."""

    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")
    resource_type: int = wire(INT8)
    resource_name: str = wire(STRING)


@dataclass(slots=True)
class AlterConfigsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    responses: list[AlterConfigsResourceResponse] = wire(Array(AlterConfigsResourceResponse))
