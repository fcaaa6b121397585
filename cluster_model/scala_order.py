"""In which order a Kafka of ZooKeeper mode walks its hash tables, where an answer shows it.

The order is promised to nobody; it is kept because recorded answers are compared byte for byte.
Derived from the published behaviour of Scala 2.13's immutable HashSet and mutable LongMap, and
confirmed on recorded Metadata answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

_WORD: Final = 0xFFFFFFFF
# Sets of up to four elements remember the order in which these came.
_SMALL_SET: Final = 4
# Hashing is paid per character: what a client may ask for must not cost more than the answer.
_NAMES_MAX: Final = 64
_PARTITIONS_MAX: Final = 1_024
_BITS_PER_LEVEL: Final = 5


def java_hash(text: str) -> int:
    """Return Java's String.hashCode as an unsigned 32-bit number."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for at in range(0, len(encoded), 2):
        code = (31 * code + (encoded[at] << 8 | encoded[at + 1])) & _WORD
    return code


def set_order(names: Iterable[str]) -> Sequence[str]:
    """Return distinct names in the order of a HashSet; very many stay as they came."""
    distinct = list(dict.fromkeys(names))
    if not _SMALL_SET < len(distinct) <= _NAMES_MAX:
        return distinct
    return _walk([(_improve(java_hash(name)), name) for name in distinct], 0)


def _improve(code: int) -> int:
    code = code + (~(code << 9) & _WORD) & _WORD
    code ^= code >> 14
    code = code + (code << 4) & _WORD
    return code ^ code >> 10


def _walk(hashed: list[tuple[int, str]], shift: int) -> list[str]:
    """One node of the trie: elements of its own first, then the nodes below."""
    if shift > 32:
        return [name for _, name in hashed]  # Equal hashes.
    slots: dict[int, list[tuple[int, str]]] = {}
    for code, name in hashed:
        slots.setdefault(code >> shift & 31, []).append((code, name))
    ordered = [slots[slot] for slot in sorted(slots)]
    own = [slot[0][1] for slot in ordered if len(slot) == 1]
    for slot in ordered:
        if len(slot) > 1:
            own += _walk(slot, shift + _BITS_PER_LEVEL)
    return own


@lru_cache(maxsize=256)
def partition_order(count: int) -> tuple[int, ...]:
    """Return 0 to count-1 in the order of a LongMap: 0 first, then by slot."""
    if not 0 < count <= _PARTITIONS_MAX:
        return tuple(range(count))
    mask = (1 << (count - 1).bit_length()) - 1 | 7
    slots: dict[int, int] = {}
    for key in range(1, count):
        slots[_free_slot(slots, key, mask)] = key
        if len(slots) > 0.5 * mask:
            mask = mask << 1 | 1
            kept = [slots[slot] for slot in sorted(slots)]
            slots = {}
            for old in kept:
                slots[_free_slot(slots, old, mask)] = old
    return (0, *(slots[slot] for slot in sorted(slots)))


def _free_slot(taken: dict[int, int], key: int, mask: int) -> int:
    mixed = key * 0x85EBCA6B & _WORD
    slot, probe = (mixed ^ mixed >> 13) & mask, 0
    while slot in taken:
        probe += 1
        slot = (slot + 2 * (probe + 1) * probe - 3) & mask
    return slot
