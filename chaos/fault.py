"""A fault as a value, and the cluster as faults see it.

A fault is an asynchronous context manager: it is injected on entering and healed on leaving.
A tier is a way to run the cluster, such as `chaos.local`. Faults use only `Target`, so that they do
not depend on the tier.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


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

    async def erase(self, member: int) -> None:
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

    async def corrupt_envelope(self, broker: int) -> None:
        """Overwrite the next Envelope to a broker's controller; return after that.

        Only without TLS between the brokers.
        """


class Target(Protocol):
    """A running cluster."""

    @property
    def brokers(self) -> tuple[int, ...]:
        """All ids."""

    @property
    def zookeeper(self) -> Ensemble:
        """The ensemble."""

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

    async def block_at(self, failpoint: str) -> int:
        """Wait until a process reaches a failpoint, block its event loop, and return its broker.

        The other threads of the process run on. Only for faults with `has_failpoint`.
        """

    async def unblock(self, broker: int) -> None:
        """End `block_at`."""

    async def expire(self, broker: int) -> None:
        """Close the active controller's ZooKeeper session from another connection.

        The active controller must be `broker`.
        """

    async def move_clock(self, broker: int, offset_s: int) -> None:
        """Shift a broker's wall clock; only for faults with `moves_clocks`."""

    async def fill_disk(self, broker: int) -> None:
        """Make every write of a broker's process to a file fail."""

    async def free_disk(self, broker: int) -> None:
        """End `fill_disk`."""

    async def delete_znode(self, path: str) -> None:
        """Delete a znode through a separate session."""

    def recorded(self, action: str, target: int | str) -> AbstractContextManager[None]:
        """Record in the evidence that a fault is injected on entering and healed on leaving."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One kind of fault."""

    name: str
    does: str  # one sentence
    inject: Callable[[Target], AbstractAsyncContextManager[None]]
    breaks_links: bool = False
    """Whether the cluster's connections must go through the tier's proxies."""
    moves_clocks: bool = False
    """Whether the tier must control the clocks of the processes."""
    has_failpoint: bool = False
    """Whether the nodes must be composed with failpoints."""
