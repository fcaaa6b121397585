"""CreateTopics with KIP-590's flag: a broker sets it for internal topics, to bypass policies.

KIP-590 §Internal CreateTopicsRequest Routing requires a flag without defining it. Here it is a
tagged field, so only the flexible versions have it.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.messages import create_topics as shipped
from bridgehead.kafka_wire.messages.create_topics import CreateTopicsResponse
from bridgehead.kafka_wire.schema import BOOL, wire

__all__ = ["CreateTopicsRequest", "CreateTopicsResponse"]


@dataclass(slots=True)
class CreateTopicsRequest(shipped.CreateTopicsRequest):
    """The request."""

    bypass_policy: bool = wire(BOOL, versions="5+", tag=0)
