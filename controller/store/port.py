"""Results of a multi: committed, failed as a whole, or unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class ControllerMovedError(Exception):
    """Another controller was elected, or another process changed the commit counter.

    Definite: nothing was written.
    """


class UnknownOutcomeError(Exception):
    """A reply was lost, so it is not known whether a multi was applied."""


class ContentConflictError(Exception):
    """ZooKeeper differs from the image. Definite: nothing was written.

    `index`: the number of the effect that failed, counted from 0. `code`: ZooKeeper's error code.
    `path`: the znode of the effect, if it is known.
    """

    def __init__(self, index: int, code: int, path: str = "") -> None:
        what = path or f"operation {index}"
        super().__init__(f"{what} failed with ZooKeeper's error {code}")
        self.index = index
        self.code = code
        self.path = path


@dataclass(frozen=True, slots=True)
class Fence:
    """Result of an election: the controller epoch, and the version of its znode.

    `last_commit_zxid` is the zxid of the last commit before this term.
    """

    epoch: int
    zk_version: int
    zxid: int
    last_commit_zxid: int

    def __post_init__(self) -> None:
        # To ZooKeeper -1 means any version, which would disable the fence.
        assert self.zk_version >= 0, self.zk_version


class Committed(NamedTuple):
    """A committed multi: its number in the commit counter, and its zxid."""

    number: int
    zxid: int
