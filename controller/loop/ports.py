"""The collaborators of the controller loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cluster_model.acls.authorization import BindAuthorize
from cluster_model.image import MetadataImage
from cluster_model.znodes.operations import Operation
from controller.store.port import Committed, ContentConflictError, Fence


class Store(Protocol):
    """The methods of ZooKeeperStore that the loop uses. Unit tests implement them in memory."""

    @property
    def next_commit(self) -> int: ...
    def encode(self, operation: Operation) -> bytes: ...
    def lease_holds(self) -> bool: ...
    async def commit_pipelined(
        self, fence: Fence, effects: Sequence[Sequence[bytes]]
    ) -> tuple[list[Committed], ContentConflictError | None]: ...


@dataclass(frozen=True, slots=True)
class LoopCallbacks:
    """The functions that the loop calls. None of them blocks."""

    # The arguments are the image and the names of the changed topics.
    publish: Callable[[MetadataImage, frozenset[str]], Awaitable[None]]
    reload: Callable[[], None]  # called when ZooKeeper and the image differ
    bind_authorize: BindAuthorize
    now_s: Callable[[], float]
    now_ms: Callable[[], int]
