"""UpdateFeatures, key 57, versions 0 to 1; flexible from 0.

Version notes:
    1: The request adds `feature_updates.upgrade_type`, `validate_only`; drops
       `feature_updates.allow_downgrade`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT8, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class FeatureUpdateKey:
    """An element of `feature_updates` of the request."""

    feature: str = wire(STRING)
    max_version_level: int = wire(INT16)
    upgrade_type: int = wire(INT8, versions="1+", default=1)
    allow_downgrade: bool = wire(BOOL, versions="0")


@dataclass(slots=True)
class UpdateFeaturesRequest:
    """The request."""

    timeout_ms: int = wire(INT32, default=60000)
    feature_updates: list[FeatureUpdateKey] = wire(Array(FeatureUpdateKey))
    validate_only: bool = wire(BOOL, versions="1+")


@dataclass(slots=True)
class UpdatableFeatureResult:
    """An element of `results` of the response."""

    feature: str = wire(STRING)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")


@dataclass(slots=True)
class UpdateFeaturesResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")
    results: list[UpdatableFeatureResult] = wire(Array(UpdatableFeatureResult))
