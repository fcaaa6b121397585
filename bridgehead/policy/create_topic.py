"""`create.topic.policy.class.name`: KIP-108's policy for new topics. Deprecated by KIP-201."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bridgehead.policy.configurable import Configurable


class CreateTopicPolicy(Configurable, ABC):
    """Checks new topics, after Kafka's own checks and before the write."""

    @dataclass(frozen=True, slots=True)
    class RequestMetadata:
        """One topic of a request.

        `num_partitions` and `replication_factor` have the broker's default if the client gave none.
        They are None if the client gave `replicas_assignments` (partition -> broker ids); otherwise
        `replicas_assignments` is None. `configs` has the configs of the request.
        """

        topic: str
        num_partitions: int | None
        replication_factor: int | None
        replicas_assignments: Mapping[int, Sequence[int]] | None
        configs: Mapping[str, str] = field(default_factory=dict)

    @abstractmethod
    def validate(self, request_metadata: RequestMetadata) -> None:
        """Raise PolicyViolationException to reject the topic."""
