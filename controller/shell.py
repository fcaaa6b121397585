"""What the loop needs of the world around it, and what it tells the world."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.authorization import BindAuthorize
from cluster_model.image import MetadataImage
from cluster_model.znode_operations import Operation
from controller.store.port import Committed, ContentConflictError, Fence
from controller.work import Work
from envelope.messages import EnvelopeAnswer


class Store(Protocol):
    """What the loop needs of the store; a fake keeps the same promises in tests."""

    @property
    def next_commit(self) -> int: ...
    def encode(self, operation: Operation) -> bytes: ...
    def lease_holds(self) -> bool: ...
    async def commit(self, fence: Fence, effects: Sequence[bytes]) -> Committed: ...
    async def commit_in_turn(
        self, fence: Fence, effects: Sequence[Sequence[bytes]]
    ) -> tuple[list[Committed], ContentConflictError | None]: ...


@dataclass(frozen=True, slots=True)
class Shell:
    """What the loop tells the world. All calls return at once."""

    publish: Callable[
        [MetadataImage, MetadataImage, frozenset[str]], None
    ]  # before, after, changed
    reload: Callable[[], None]  # ZooKeeper and image differ: load again
    encode_answer: Callable[[Work, frozenset[str], MetadataImage], EnvelopeAnswer]
    encode_refusal: Callable[[Work, ErrorCode], EnvelopeAnswer]
    bind_authorize: BindAuthorize
    now_s: Callable[[], float]
    now_ms: Callable[[], int]
