"""`alter.config.policy.class.name`: KIP-133's policy for configs. Deprecated by KIP-201."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from bridgehead.policy.configurable import Configurable


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """A topic or a broker.

    `type` is TOPIC or BROKER. The BROKER with the name "" stands for the default of all brokers.
    """

    type: str
    name: str


class AlterConfigPolicy(Configurable, ABC):
    """Checks changes of configs, after Kafka's own checks and before the write."""

    @dataclass(frozen=True, slots=True)
    class RequestMetadata:
        """One resource of a request. `configs` has only the entries of the request.

        In an incremental request, the value of an APPEND or SUBTRACT is the one that the client
        sent; the value of a DELETE is None.
        """

        resource: ConfigResource
        configs: Mapping[str, str | None] = field(default_factory=dict)

    @abstractmethod
    def validate(self, request_metadata: RequestMetadata) -> None:
        """Raise PolicyViolationException to reject the change."""
