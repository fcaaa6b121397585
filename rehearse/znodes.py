"""The tree of Kafka's znodes, whatever it was read from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from cluster_model.znodes.access import ZnodeAcl

# The roots of Kafka's layout. Only these are read: a ZooKeeper without a chroot may have the znodes
# of other programs, and of `/consumers` KRaft keeps nothing.
ROOTS: Final = (
    "/admin",
    "/brokers",
    "/cluster",
    "/config",
    "/controller",
    "/controller_epoch",
    "/delegation_token",
    "/feature",
    "/isr_change_notification",
    "/kafka-acl",
    "/kafka-acl-changes",
    "/kafka-acl-extended",
    "/kafka-acl-extended-changes",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
    "/migration",
)
# A cluster of 100,000 partitions has about 400,000 znodes.
ZNODES_MAX: Final = 4_000_000


class SourceError(Exception):
    """A source cannot be read. The text is one sentence that names the source."""


class Hidden(Enum):
    """Why the data of a znode, or a part of it, is not in the tree."""

    NO_AUTH = "no right"  # ZooKeeper's ACL denies the reading session
    LEFT_OUT = "left out"  # a secret that the dump does not have


@dataclass(frozen=True, slots=True)
class Znode:
    """One znode.

    `acls` is None if the source does not tell. If `hidden` is LEFT_OUT, `left_out` has the names of
    the configs that are not in `data`; it is empty if there is no data at all.
    """

    data: bytes | None = None
    version: int = 0
    ephemeral: bool = False
    acls: tuple[ZnodeAcl, ...] | None = None
    hidden: Hidden | None = None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ZnodeTree:
    """The znodes below a chroot, by path without the chroot.

    `zxid` is the last one that the source has seen, None if it does not tell. If `is_one_state` is
    False, the ensemble was written to while it was read.
    """

    znodes: Mapping[str, Znode]
    zxid: int | None = None
    is_one_state: bool = True
    _children: Mapping[str, Sequence[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        children: defaultdict[str, list[str]] = defaultdict(list)
        for path in sorted(self.znodes):
            parent, _, name = path.rpartition("/")
            children[parent].append(name)
        object.__setattr__(self, "_children", dict(children))

    def __contains__(self, path: str) -> bool:
        return path in self.znodes

    def children(self, path: str) -> Sequence[str]:
        """Return the names of a znode's children, sorted; none if it does not exist."""
        return self._children.get(path, ())

    def parents(self) -> Iterable[str]:
        """Return the paths that have children."""
        return self._children.keys()

    def data(self, path: str) -> bytes | None:
        """Return the data of a znode; None if it has none or does not exist."""
        znode = self.znodes.get(path)
        return znode.data if znode else None

    def below(self, path: str) -> Iterator[str]:
        """Yield the paths of all znodes below `path`, parents first."""
        waiting = [path]
        while waiting:
            parent = waiting.pop()
            for name in self.children(parent):
                waiting.append(f"{parent}/{name}")
                yield waiting[-1]


def is_in_layout(path: str) -> bool:
    """Return whether a path (without the chroot) belongs to Kafka's layout."""
    return "/" + path.split("/", 2)[1] in ROOTS if path.startswith("/") else False
