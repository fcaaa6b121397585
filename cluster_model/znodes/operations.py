"""The operations of a ZooKeeper multi, as values; the store sends them.

Paths exclude the chroot. `data=None` creates a znode without data, as Kafka does for parents. The
version -1 matches any version.
"""

from __future__ import annotations

from typing import Final, NamedTuple

ANY_VERSION: Final = -1


class Create(NamedTuple):
    """Create a znode; with `sequential`, ZooKeeper appends ten digits to the path."""

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False


class SetData(NamedTuple):
    """Set a znode's data if it has this version."""

    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Delete a znode without children if it has this version."""

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Fail the multi unless the znode has this version."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check
