"""inter.broker.protocol.version: the levels of Kafka 3.9, and the one at which forwarding starts.

Each broker behaves as its own level requires (KIP-590 §Compatibility). Below the bridge release, it
writes to ZooKeeper itself, as brokers did before KIP-590.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Every level, oldest first.
LEVELS: Final = tuple(
    """
    0.8.0 0.8.1 0.8.2 0.9.0 0.10.0-IV0 0.10.0-IV1 0.10.1-IV0 0.10.1-IV1 0.10.1-IV2 0.10.2-IV0
    0.11.0-IV0 0.11.0-IV1 0.11.0-IV2 1.0-IV0 1.1-IV0 2.0-IV0 2.0-IV1 2.1-IV0 2.1-IV1 2.1-IV2
    2.2-IV0 2.2-IV1 2.3-IV0 2.3-IV1 2.4-IV0 2.4-IV1 2.5-IV0 2.6-IV0 2.7-IV0 2.7-IV1 2.7-IV2
    2.8-IV0 2.8-IV1 3.0-IV0 3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2 3.3-IV3 3.4-IV0
    3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4
    3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1
    """.split()  # noqa: SIM905 (sixty quoted words are harder to read)
)
# The first level at which a broker forwards.
BRIDGE: Final = "3.4-IV0"
# An unreleased version has no short name: only its levels, such as 4.0-IV0, are valid.
_UNFINISHED: Final = frozenset({"4.0"})
# The short name of a release means its newest level.
_BY_NAME: Final[Mapping[str, str]] = {
    **{
        release: level
        for level in LEVELS
        if (release := level.partition("-")[0]) not in _UNFINISHED
    },
    **{level: level for level in LEVELS},
}


def level_of(text: str) -> str | None:
    """Return the level for a config value, such as `3.3-IV3` for `3.3`; None if it is invalid.

    Only the first two numbers count (three before 1.0): 3.3.2 means 3.3.
    """
    kept = 3 if text.startswith("0.") else 2
    return _BY_NAME.get(".".join(text.split(".")[:kept]))


def feature_level(level: str) -> int:
    """Return the level as KRaft's metadata.version: 1 for 3.0-IV1, 21 for 3.9-IV0."""
    return LEVELS.index(level) - LEVELS.index("3.0-IV1") + 1


def is_below_the_bridge(level: str) -> bool:
    """Return whether a broker at this level writes to ZooKeeper instead of forwarding."""
    return LEVELS.index(level) < LEVELS.index(BRIDGE)
