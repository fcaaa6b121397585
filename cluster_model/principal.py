"""Who asks: Kafka's principal, a type and a name.

Equality is by type and name alone. Whether the connection was authenticated with a delegation
token travels beside it, because the controller refuses token requests over such connections
(KIP-590 §KafkaPrincipal Serialization carries it too).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class KafkaPrincipal:
    """`User:alice`; compared by type and name, case-sensitively."""

    type: str
    name: str
    token_authenticated: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = KafkaPrincipal("User", "ANONYMOUS")
