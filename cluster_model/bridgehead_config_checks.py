"""Judges of the values of our own configs: the end of a sentence says why one is refused.

Each takes the text as said and returns None for a good one; `bridgehead_configs` has their rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class BridgeheadKey:
    """One of our configs. `refuse` returns the end of a sentence, or None for a good value."""

    name: str
    default: str
    common: bool  # may be said for the whole broker
    per_listener: bool  # may be said as listener.name.<listener>.<name>
    refuse: Callable[[str], str | None]
    documentation: str


LOG_LEVELS: Final = ("OFF", "INFO", "DEBUG", "TRACE")


def blocking(value: str) -> str | None:
    """See the module."""
    return None if value in ("controller", "cluster") else "must be controller or cluster"


def reads(value: str) -> str | None:
    """See the module."""
    return None if value in ("local", "controller") else "must be local or controller"


def controller_id(value: str) -> str | None:
    """See the module."""
    if value in ("actual", "random", "self") or re.fullmatch(r"[0-9]+", value):
        return None
    return "must be actual, random, self or a broker id"


def delay_ms(value: str) -> str | None:
    """See the module."""
    return None if re.fullmatch(r"[0-9]{1,9}", value) else "must be a number of milliseconds"


def timeout_ms(value: str) -> str | None:
    """See the module."""
    good = re.fullmatch(r"[0-9]{1,7}", value) and int(value)
    return None if good else "must be a number of milliseconds above 0"


def dialect(value: str) -> str | None:
    """See the module."""
    return None if value in ("shipped", "drafted") else "must be shipped or drafted"


def listener(value: str) -> str | None:
    """See the module."""
    host, _, port = value.rpartition(":")
    return None if host and port.isdigit() else "is not a host:port"


def metrics_dialect(value: str) -> str | None:
    """See the module."""
    known = ("confluent", "strimzi", "both")
    return None if value in known else f"must be one of {', '.join(known)}"


def pinned(value: str) -> str | None:
    """See the module."""
    return None if not value or value.isdigit() else "is not a broker id"


def boolean(value: str) -> str | None:
    """See the module."""
    return None if value.lower() in ("true", "false") else "is neither true nor false"


def log_level(value: str) -> str | None:
    """See the module."""
    return None if value in LOG_LEVELS else f"is none of {', '.join(LOG_LEVELS)}"


def principals(value: str) -> str | None:
    """See the module."""
    return None if value in ("real", "fake") else "must be real or fake"


def anything(_value: str) -> str | None:
    """See the module."""
    return None
