"""The four things a multi can do to a znode. Pure values; the store sends them.

Paths are without the chroot. `data=None` is a znode without data, as Kafka writes parents.
A version of -1 would mean "any", which switches a check off: it is refused where that matters.
"""

from __future__ import annotations

from typing import Final, NamedTuple

ANY_VERSION: Final = -1


class Create(NamedTuple):
    """Create a znode; `sequential` appends ZooKeeper's ten digits to the path."""

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False


class SetData(NamedTuple):
    """Set a znode's data if its version is `version`."""

    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Delete a znode if its version is `version`; it must have no children."""

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Fail the whole multi unless the znode's version is `version`."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check
