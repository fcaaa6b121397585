"""The iteration order of Java's HashMap, on which some of Kafka's responses depend.

The order matters because our responses are compared byte for byte with recorded ones of Kafka. This
module computes it from the published behaviour of java.util.HashMap. One thing is not reproduced:
Java turns a crowded bucket into a tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

Key = TypeVar("Key")
_WORD: Final = 0xFFFFFFFF
_LOAD: Final = 0.75
_DEFAULT_CAPACITY: Final = 16
# More names than this keep their order, because hashing costs time for each character.
NAMES_MAX: Final = 64


def java_hash(text: str) -> int:
    """Return Java's String.hashCode as an unsigned 32-bit number."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for at in range(0, len(encoded), 2):
        code = (31 * code + (encoded[at] << 8 | encoded[at + 1])) & _WORD
    return code


def topic_partition_hash(topic_hash: int, partition: int) -> int:
    """Return the hashCode of Kafka's TopicPartition, from the hashCode of its topic's name."""
    return (31 * (31 + partition) + topic_hash) & _WORD


def hash_map_order(codes: Mapping[Key, int], capacity: int = _DEFAULT_CAPACITY) -> list[Key]:
    """Return the order in which a HashMap iterates over keys that were inserted as in `codes`.

    Args:
        codes: the unsigned hashCode of each key, in the order of insertion.
        capacity: the capacity that the map was created with.
    """
    slots = 1 << max(capacity - 1, 0).bit_length()
    while len(codes) > slots * _LOAD:
        slots *= 2
    return sorted(codes, key=lambda key: (codes[key] ^ codes[key] >> 16) & slots - 1)
