"""`alter.config.policy.class.name`: KIP-133's policy for configs. Deprecated by KIP-201."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from bridgehead.policy.configurable import Configurable


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """`type` is TOPIC or BROKER; the BROKER named "" is the default of all brokers."""

    type: str
    name: str


class AlterConfigPolicy(Configurable, ABC):
    """Checks changes of configs, after Kafka's own checks and before the write."""

    @dataclass(frozen=True, slots=True)
    class RequestMetadata:
        """One resource of a request, with the entries of the request, not the merged configs.

        For an incremental request the values are those sent, also for an APPEND; None for a DELETE.
        """

        resource: ConfigResource
        configs: Mapping[str, str | None] = field(default_factory=dict)

    @abstractmethod
    def validate(self, request_metadata: RequestMetadata) -> None:
        """Raise PolicyViolationException to reject the change."""
