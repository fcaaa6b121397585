"""A fault as a value, and the cluster as faults see it.

A fault is an asynchronous context manager: it is injected on entering and healed on leaving.
A tier is a way to run the cluster, such as `chaos.local`. Faults use only the protocols of this
module, so that they do not depend on the tier. Every tier has a `Target`. What only some tiers can
do is in a protocol of its own, which a fault names in `needs`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable


class Ensemble(Protocol):
    """The members of ZooKeeper, by their ids."""

    @property
    def members(self) -> tuple[int, ...]:
        """All ids."""

    async def leader(self) -> int:
        """Return the leader; wait until there is one."""

    async def kill(self, member: int) -> None:
        """End a member's process without warning."""

    async def start(self, member: int) -> None:
        """Start a killed member; return when it serves."""

    async def empty(self, member: int) -> None:
        """Delete the data of a killed member."""

    async def pause(self, member: int) -> None:
        """Suspend a member's process without ending it."""

    async def resume(self, member: int) -> None:
        """Resume a paused member."""

    async def fill_disk(self, member: int) -> None:
        """Make every write of a member to a file fail; the next such write ends the member."""

    def slow_fsync(self, member: int, seconds: float) -> AbstractAsyncContextManager[None]:
        """Make each fsync of a member take `seconds` longer."""


class Network(Protocol):
    """The links that a fault can break. A link heals when the context is left.

    "A broker's controller" is the candidate for controller in that broker's process.
    """

    def cut_from_zookeeper(self, broker: int) -> AbstractContextManager[None]:
        """Deliver nothing between a broker's process and ZooKeeper."""

    def cut_from_peers(
        self, broker: int, *, requests: bool, replies: bool
    ) -> AbstractContextManager[None]:
        """Hold back other brokers' requests to a broker's controller, its replies, or both."""

    def slow_peers(self, broker: int, seconds: float) -> AbstractContextManager[None]:
        """Delay what other brokers send to a broker's controller."""

    async def reset_peers(self, broker: int) -> None:
        """Reset the connections of other brokers to a broker's controller.

        First waits until an Envelope is in flight.
        """

    async def lose_commit(self, broker: int, *, reply: bool) -> None:
        """Lose a broker's next write to ZooKeeper or, if `reply`, the reply; return after that."""


class Disks(Protocol):
    """The disks of the brokers."""

    async def fill(self, broker: int) -> None:
        """Make every write of a broker's process to a file fail."""

    async def free(self, broker: int) -> None:
        """End `fill`."""


@runtime_checkable
class Target(Protocol):
    """A running cluster."""

    @property
    def brokers(self) -> tuple[int, ...]:
        """All ids."""

    @property
    def network(self) -> Network:
        """The network; only for faults with `breaks_links`."""

    async def controller(self) -> int:
        """Return the active controller; wait until all running brokers agree on it."""

    async def another_controller(self, before: int) -> int:
        """Wait until a broker other than `before` is the active controller, and return it."""

    async def kill(self, broker: int) -> None:
        """End a broker's process without warning."""

    async def stop(self, broker: int) -> None:
        """Stop a broker, which closes its sessions first."""

    async def start(self, broker: int) -> None:
        """Start a broker; return when it serves."""

    async def pause(self, broker: int) -> None:
        """Suspend a broker's process without ending it."""

    async def resume(self, broker: int) -> None:
        """Resume a paused broker."""

    async def hold_at(self, failpoint: str) -> int:
        """Wait until a process reaches a failpoint, suspend that process, and return its broker.

        Only for faults with `has_failpoint`; see chaos/failpoints.py.
        """

    async def expire(self, broker: int) -> None:
        """Close the active controller's ZooKeeper session from another connection.

        The active controller must be `broker`.
        """

    async def move_clock(self, broker: int, offset_s: int) -> None:
        """Shift a broker's wall clock; only for faults with `moves_clocks`."""

    async def delete_znode(self, path: str) -> None:
        """Delete a znode through a separate session."""

    def recorded(self, action: str, target: int | str) -> AbstractContextManager[None]:
        """Record in the evidence that a fault is injected on entering and healed on leaving."""


@runtime_checkable
class TargetWithEnsemble(Target, Protocol):
    """A cluster with several members of ZooKeeper, or one that can fail."""

    @property
    def zookeeper(self) -> Ensemble:
        """The ensemble."""


@runtime_checkable
class TargetWithDisks(Target, Protocol):
    """A cluster whose disks can fail."""

    @property
    def disks(self) -> Disks:
        """The brokers' disks."""


@runtime_checkable
class TargetWithThreads(Target, Protocol):
    """A cluster whose processes have threads besides the event loop."""

    async def block_at(self, failpoint: str) -> int:
        """Wait until a process reaches a failpoint, block its event loop, and return its broker.

        The other threads of the process run on. Only for faults with `has_failpoint`.
        """

    async def unblock(self, broker: int) -> None:
        """End `block_at`."""


@runtime_checkable
class TargetWithBytes(Target, Protocol):
    """A cluster whose network carries bytes, not messages."""

    async def corrupt_envelope(self, broker: int) -> None:
        """Overwrite the next Envelope to a broker's controller; return after that.

        Only for faults with `breaks_links`, and only without TLS between the brokers.
        """


Record = Callable[[int | str], AbstractContextManager[None]]
"""Records that a fault of this target is injected on entering and healed on leaving.

The argument is a broker, or another target. Kills, stops and expired sessions are recorded by the
tier.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One kind of fault."""

    name: str
    does: str  # one sentence
    action: str
    """The name of the fault in the evidence. It begins with the verb with which `name` begins."""
    effect: str
    """The name of what must prove the fault, in judge.effects.EFFECTS."""
    inject: Callable[[Any, Record], AbstractAsyncContextManager[None]]
    """The first argument is a target of the type `needs`."""
    needs: type = Target
    """What the tier must be able to do."""
    breaks_links: bool = False
    """Whether the cluster's connections must go through the tier's proxies."""
    moves_clocks: bool = False
    """Whether the tier must control the clocks of the processes."""
    has_failpoint: bool = False
    """Whether the nodes must be composed with failpoints."""

    def injected_into(self, target: Target) -> AbstractAsyncContextManager[None]:
        """Inject the fault on entering, and heal it on leaving."""
        return self.inject(target, partial(target.recorded, self.action))
