"""Codes to which later releases of Kafka may add."""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class ExtensibleCode(IntEnum):
    """Codes of one kind, with a member UNKNOWN. A code that has no member is UNKNOWN."""

    @classmethod
    def _missing_(cls, value: object) -> Self:
        return cls["UNKNOWN"]
