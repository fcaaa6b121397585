"""`create.topic.policy.class.name`: KIP-108's policy for new topics. Deprecated by KIP-201."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bridgehead.policy.configurable import Configurable


class CreateTopicPolicy(Configurable, ABC):
    """Judges new topics, after Kafka's own checks and before anything is written."""

    @dataclass(frozen=True, slots=True)
    class RequestMetadata:
        """One topic of a request.

        `num_partitions` and `replication_factor` have the broker's defaults filled in, and are
        None where the client gave `replicas_assignments` (partition -> broker ids); those are None
        where the broker places the replicas. `configs` are the request's own.
        """

        topic: str
        num_partitions: int | None
        replication_factor: int | None
        replicas_assignments: Mapping[int, Sequence[int]] | None
        configs: Mapping[str, str] = field(default_factory=dict)

    @abstractmethod
    def validate(self, request_metadata: RequestMetadata) -> None:
        """Raise PolicyViolationException when the topic may not be created."""
