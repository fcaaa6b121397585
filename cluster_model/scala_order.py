"""Iteration orders of Scala 2.13 collections, on which some of Kafka's responses depend.

No API guarantees these orders, but responses are compared with recordings byte for byte. The
functions reproduce the orders of the immutable HashSet and of the mutable LongMap and HashMap.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from typing import Final, TypeVar

from bridgehead.kafka_wire.java_order import NAMES_MAX, java_hash

Key = TypeVar("Key")
_WORD: Final = 0xFFFFFFFF
# Sets of up to four elements keep the insertion order.
_SMALL_SET: Final = 4
_KEYS_MAX: Final = 1_024
_BITS_PER_LEVEL: Final = 5
_MUTABLE_SLOTS: Final = 16
_MUTABLE_LOAD: Final = 0.75
_SIGN: Final = 1 << 31


def set_order(names: Iterable[str]) -> Sequence[str]:
    """Return distinct names in the order of a HashSet; more than NAMES_MAX keep their order."""
    return _set_order(names, (), java_hash, NAMES_MAX)


def int_set_order(keys: Iterable[int], without: Collection[int]) -> Sequence[int]:
    """Return `keys` except `without`, in the order of a HashSet of 32-bit numbers."""
    return _set_order(keys, without, _word, _KEYS_MAX)


def _set_order(
    keys: Iterable[Key], without: Collection[Key], hash_of: Callable[[Key], int], count_max: int
) -> list[Key]:
    distinct = list(dict.fromkeys(keys))
    left = [key for key in distinct if key not in without]
    if not _SMALL_SET < len(distinct) <= count_max:
        return left
    return _walk([(_improve(hash_of(key)), key) for key in left], 0)


def mutable_hash_order(names: Iterable[str], count_max: int = NAMES_MAX) -> Sequence[str]:
    """Return distinct names in the order of a mutable HashMap.

    More than `count_max` names keep their order.
    """
    return _mutable_order(names, java_hash, count_max)


def mutable_int_order(keys: Iterable[int]) -> Sequence[int]:
    """Return distinct 32-bit numbers in the order of a mutable HashMap.

    More than `_KEYS_MAX` numbers keep their order.
    """
    return _mutable_order(keys, _word, _KEYS_MAX)


def _mutable_order(keys: Iterable[Key], hash_of: Callable[[Key], int], count_max: int) -> list[Key]:
    distinct = list(dict.fromkeys(keys))
    if not 1 < len(distinct) <= count_max:
        return distinct
    slots = _MUTABLE_SLOTS
    while len(distinct) >= slots * _MUTABLE_LOAD:
        slots *= 2
    codes = {key: _spread(hash_of(key)) for key in distinct}
    # Within a slot, by the signed hash.
    return sorted(distinct, key=lambda key: (codes[key] & slots - 1, codes[key] ^ _SIGN))


def _word(key: int) -> int:
    return key & _WORD


def _spread(code: int) -> int:
    return code ^ code >> 16


def _improve(code: int) -> int:
    code = code + (~(code << 9) & _WORD) & _WORD
    code ^= code >> 14
    code = code + (code << 4) & _WORD
    return code ^ code >> 10


def _walk(hashed: list[tuple[int, Key]], shift: int) -> list[Key]:
    """Return the elements of a trie node: its own first, then those of its child nodes."""
    if shift > 32:
        return [key for _, key in hashed]  # Equal hashes.
    slots: dict[int, list[tuple[int, Key]]] = {}
    for code, key in hashed:
        slots.setdefault(code >> shift & 31, []).append((code, key))
    ordered = [slots[slot] for slot in sorted(slots)]
    elements = [slot[0][1] for slot in ordered if len(slot) == 1]
    for slot in ordered:
        if len(slot) > 1:
            elements += _walk(slot, shift + _BITS_PER_LEVEL)
    return elements


@lru_cache(maxsize=256)
def partition_order(count: int) -> tuple[int, ...]:
    """Return 0 to count-1 in the order of a LongMap; above `_KEYS_MAX`, in ascending order."""
    return long_map_order(tuple(range(count)))


@lru_cache(maxsize=256)
def long_map_order(keys: tuple[int, ...]) -> tuple[int, ...]:
    """Insert distinct keys into a LongMap; return them in its order: 0 first, then by slot.

    The map is created for this number of keys. More than `_KEYS_MAX` keys keep their order.
    """
    if not 0 < len(keys) <= _KEYS_MAX:
        return keys
    mask = (1 << (len(keys) - 1).bit_length()) - 1 | 7
    slots: dict[int, int] = {}
    for key in keys:
        if not key:
            continue
        slots[_free_slot(slots, key, mask)] = key
        if len(slots) > 0.5 * mask:
            mask = mask << 1 | 1
            kept = [slots[slot] for slot in sorted(slots)]
            slots = {}
            for old in kept:
                slots[_free_slot(slots, old, mask)] = old
    zero = (0,) if 0 in keys else ()
    return (*zero, *(slots[slot] for slot in sorted(slots)))


def _free_slot(taken: dict[int, int], key: int, mask: int) -> int:
    mixed = (key ^ key >> 16) * 0x85EBCA6B & _WORD
    slot, probe = (mixed ^ mixed >> 13) & mask, 0
    while slot in taken:
        probe += 1
        slot = (slot + 2 * (probe + 1) * probe - 3) & mask
    return slot
