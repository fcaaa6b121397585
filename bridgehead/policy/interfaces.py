"""The exception that a policy raises to reject a change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


class PolicyViolationException(Exception):
    """The request does not satisfy the policy.

    The client gets error code 44, POLICY_VIOLATION, and the text of the exception. They apply to
    the topic or resource that violates the policy. Other topics and resources of the request are
    checked separately (KIP-108 §Proposed Changes). Some versions of requests are older than the
    error code, or have no field for a text. docs/kips.md lists their responses (rows 201.48 to
    201.50).
    """


# The life cycle of a policy.


class Configurable:
    """Built without arguments, configured once, closed once (KIP-108 §Public Interfaces)."""

    def configure(self, configs: Mapping[str, str]) -> None:
        """Read the broker's properties, unparsed.

        An exception prevents the broker from starting; the operator sees its message.
        """

    def close(self) -> None:
        """Release resources. Called when the broker stops."""


# `create.topic.policy.class.name`: KIP-108's policy for new topics. Deprecated by KIP-201.


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


# `alter.config.policy.class.name`: KIP-133's policy for configs. Deprecated by KIP-201.


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
