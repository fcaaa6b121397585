"""DescribeConfigs, key 32, versions 0 to 4; flexible from 4.

Version notes:
    1: The request adds `include_synonyms`. The response adds `results.configs.config_source`,
       `results.configs.synonyms`; drops `results.configs.is_default`.
    2: Same fields as 1.
    3: The request adds `include_documentation`. The response adds `results.configs.config_type`,
       `results.configs.documentation`.
    4: First flexible version.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT8, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class DescribeConfigsResource:
    """An element of `resources` of the request."""

    resource_type: int = wire(INT8)
    resource_name: str = wire(STRING)
    configuration_keys: list[str] | None = wire(Array(STRING), nullable="0+")


@dataclass(slots=True)
class DescribeConfigsRequest:
    """The request."""

    resources: list[DescribeConfigsResource] = wire(Array(DescribeConfigsResource))
    include_synonyms: bool = wire(BOOL, versions="1+")
    include_documentation: bool = wire(BOOL, versions="3+")


@dataclass(slots=True)
class DescribeConfigsSynonym:
    """An element of `results.configs.synonyms` of the response. Versions 1+."""

    name: str = wire(STRING)
    value: str | None = wire(STRING, nullable="1+")
    source: int = wire(INT8)


@dataclass(slots=True)
class DescribeConfigsResourceResult:
    """An element of `results.configs` of the response."""

    name: str = wire(STRING)
    value: str | None = wire(STRING, nullable="0+")
    read_only: bool = wire(BOOL)
    config_source: int = wire(INT8, versions="1+", default=-1)
    is_default: bool = wire(BOOL, versions="0")
    is_sensitive: bool = wire(BOOL)
    synonyms: list[DescribeConfigsSynonym] = wire(Array(DescribeConfigsSynonym), versions="1+")
    config_type: int = wire(INT8, versions="3+")
    documentation: str | None = wire(STRING, versions="3+", nullable="3+")


@dataclass(slots=True)
class DescribeConfigsResult:
    """An element of `results` of the response."""

    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")
    resource_type: int = wire(INT8)
    resource_name: str = wire(STRING)
    configs: list[DescribeConfigsResourceResult] = wire(Array(DescribeConfigsResourceResult))


@dataclass(slots=True)
class DescribeConfigsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    results: list[DescribeConfigsResult] = wire(Array(DescribeConfigsResult))
