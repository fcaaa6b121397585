"""`alter.config.policy.class.name`: KIP-133's policy for configs. Deprecated by KIP-201."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from bridgehead.policy.configurable import Configurable


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """What is configured: `type` is TOPIC or BROKER; a BROKER named "" is every broker."""

    type: str
    name: str


class AlterConfigPolicy(Configurable, ABC):
    """Judges changes of configs, after Kafka's own checks and before anything is written."""

    @dataclass(frozen=True, slots=True)
    class RequestMetadata:
        """One resource of a request, with the request's own entries alone, not the merged result.

        An incremental request's value stands as it was sent, also that of an APPEND; a DELETE has
        none, so it is None.
        """

        resource: ConfigResource
        configs: Mapping[str, str | None] = field(default_factory=dict)

    @abstractmethod
    def validate(self, request_metadata: RequestMetadata) -> None:
        """Raise PolicyViolationException when the configs may not be altered so."""
