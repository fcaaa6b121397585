"""ApiVersions, key 18, versions 0 to 4; flexible from 3.

Version notes:
    1: The response adds `throttle_time_ms`.
    2: Same fields as 1.
    3: First flexible version. The request adds `client_software_name`, `client_software_version`.
       The response adds `supported_features`, `finalized_features_epoch`, `finalized_features`,
       `zk_migration_ready`.
    4: Same fields as 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class ApiVersionsRequest:
    """The request."""

    client_software_name: str = wire(STRING, versions="3+")
    client_software_version: str = wire(STRING, versions="3+")


@dataclass(slots=True)
class ApiVersion:
    """An element of `api_keys` of the response."""

    api_key: int = wire(INT16)
    min_version: int = wire(INT16)
    max_version: int = wire(INT16)


@dataclass(slots=True)
class SupportedFeatureKey:
    """An element of `supported_features` of the response. Versions 3+."""

    name: str = wire(STRING)
    min_version: int = wire(INT16)
    max_version: int = wire(INT16)


@dataclass(slots=True)
class FinalizedFeatureKey:
    """An element of `finalized_features` of the response. Versions 3+."""

    name: str = wire(STRING)
    max_version_level: int = wire(INT16)
    min_version_level: int = wire(INT16)


@dataclass(slots=True)
class ApiVersionsResponse:
    """The response."""

    error_code: int = wire(INT16)
    api_keys: list[ApiVersion] = wire(Array(ApiVersion))
    throttle_time_ms: int = wire(INT32, versions="1+")
    supported_features: list[SupportedFeatureKey] = wire(
        Array(SupportedFeatureKey), versions="3+", tag=0
    )
    finalized_features_epoch: int = wire(INT64, versions="3+", tag=1, default=-1)
    finalized_features: list[FinalizedFeatureKey] = wire(
        Array(FinalizedFeatureKey), versions="3+", tag=2
    )
    zk_migration_ready: bool = wire(BOOL, versions="3+", tag=3)
