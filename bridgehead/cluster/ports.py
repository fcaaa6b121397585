"""Chooses ports so that no two processes of this machine get the same one.

A port is reserved for its process by two sockets, which the kernel closes when the process dies:

- an abstract Unix socket whose name contains the port. The kernel gives such a name to one process
  at a time, of any user. Each network namespace has names of its own, as it has ports. So there
  are no lock files, which could be stale or belong to another user.
- a TCP socket that is bound to the port and does not listen. So the kernel gives the port to no
  outgoing connection and to no program that binds port 0. A server that sets SO_REUSEADDR can
  still bind the port and listen, as often as it restarts: asyncio, gRPC, Java and Docker do so.

A reservation ends with `Ports.close` or with the process. Without `close` it outlives its `Ports`.
"""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Literal, Protocol, Self

from bridgehead.cluster.errors import ClusterError

LOOPBACK = "127.0.0.1"
_CHOSEN: Final = range(20_000, 32_000)
_ROWS: Final = range(15_000, 20_000)
_EPHEMERAL_FILE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LINUX_EPHEMERAL: Final = range(32_768, 61_000)
_ENOUGH: Final = 1000


# A port whose server this process or a child starts, a port that the user named, and a port of a
# row that this process hands to another one.
Use = Literal["server", "named", "row"]


class Reserve(Protocol):
    """Reserves a port for this process."""

    def __call__(self, host: str, port: int, use: Use, /) -> ExitStack | None:
        """Return what releases the port; None if another process has it."""


class Ports:
    """The ports that this process has reserved for one purpose, such as one cluster."""

    def __init__(self, reserve: Reserve | None = None) -> None:
        """`reserve` replaces the sockets of this machine, in tests."""
        self._reserve = reserve or reserve_on_this_machine
        self._reserved: dict[int, ExitStack] = {}

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release every port."""
        self.close()

    def close(self) -> None:
        """Release every port. May be called twice."""
        self._release(list(self._reserved))
        _OF_THIS_PROCESS.discard(self)

    def demand(self, host: str, port: int) -> int:
        """Reserve the port that the user named.

        Raises:
            ClusterError: the port is in use.
        """
        if not self._take(host, port, "named"):
            raise ClusterError(
                f"Port {port} is in use: stop the process that listens there, choose another "
                "--base-port, or use --ports auto."
            )
        return port

    def prefer(self, host: str, port: int) -> int:
        """Reserve `port` if it is free, otherwise another port."""
        return port if self._take(host, port, "named") else self.choose(host)

    def choose(self, host: str = LOOPBACK) -> int:
        """Reserve a free port for a server that this process or a child starts.

        Raises:
            ClusterError: no port is free.
        """
        candidates = outside(_CHOSEN, ephemeral_ports())
        for port in _from_a_random_one(candidates):
            if self._take(host, port, "server"):
                return port
        raise ClusterError(_none_free(candidates, "port"))

    def choose_row(self, count: int, host: str = LOOPBACK) -> int:
        """Reserve consecutive ports for a process that gets them as its base port.

        Return the first of them. `choose` never returns these ports, and `demand` in that process
        succeeds although they are reserved here.

        Raises:
            ClusterError: no `count` consecutive ports are free.
        """
        candidates = outside(_ROWS, ephemeral_ports())
        starts = candidates[: len(candidates) - count + 1 : count]
        for first in _from_a_random_one(starts):
            row = range(first, first + count)
            taken = [port for port in row if self._take(host, port, "row")]
            if len(taken) == count:
                return first
            self._release(taken)
        raise ClusterError(_none_free(candidates, f"row of {count} ports"))

    def _take(self, host: str, port: int, use: Use) -> bool:
        if port in self._reserved or (held := self._reserve(host, port, use)) is None:
            return False
        self._reserved[port] = held
        _OF_THIS_PROCESS.add(self)
        return True

    def _release(self, ports: Iterable[int]) -> None:
        for port in ports:
            self._reserved.pop(port).close()


# Without this set, a `Ports` without references would lose its reservations.
_OF_THIS_PROCESS: Final[set[Ports]] = set()


def outside(window: range, ephemeral: range) -> Sequence[int]:
    """Return the ports of `window` that the kernel does not use for outgoing connections.

    If these are too few, return the whole window. The bound socket still keeps a reserved port from
    outgoing connections; they only make it more likely that a port is taken already.
    """
    free = [port for port in window if port not in ephemeral]
    return free if len(free) >= _ENOUGH else window


def ephemeral_ports(file: Path = _EPHEMERAL_FILE) -> range:
    """Return the ports that the kernel uses for outgoing connections."""
    try:
        first, last = map(int, file.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return _LINUX_EPHEMERAL
    return range(first, last + 1)


def _none_free(candidates: Sequence[int], what: str) -> str:
    return (
        f"No {what} between {candidates[0]} and {candidates[-1]} is free: stop the processes that "
        "use them, or name a port with --base-port."
    )


def _from_a_random_one(candidates: Sequence[int]) -> Iterator[int]:
    """Yield each candidate once; processes that choose at the same time begin at other places."""
    count = len(candidates)
    start = secrets.randbelow(count) if count else 0
    return (candidates[(start + number) % count] for number in range(count))


def reserve_on_this_machine(host: str, port: int, use: Use) -> ExitStack | None:
    """Bind the two sockets of a port; see `Reserve`."""
    sockets = ExitStack()
    if _binds_name(sockets, port, use) and _binds_port(sockets, host, port, use):
        return sockets
    sockets.close()
    return None


def _binds_name(sockets: ExitStack, port: int, use: Use) -> bool:
    if sys.platform != "linux":  # only Linux has abstract sockets
        return True
    name = sockets.enter_context(socket.socket(socket.AF_UNIX))
    return _binds(name, f"\0bridgehead/{'row' if use == 'row' else 'port'}/{port}")


def _binds_port(sockets: ExitStack, host: str, port: int, use: Use) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = sockets.enter_context(socket.socket(family))
    # With this option only a socket that listens is in the way. Without it, the closed connections
    # of a server that has just stopped are in the way for a minute. Then another free port is
    # better, but the port that the user named has to do.
    if use == "named":
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if not _binds(bound, (host.strip("[]"), port)):
        return False
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return True


def _binds(opened: socket.socket, address: str | tuple[str, int]) -> bool:
    try:
        opened.bind(address)
    except OSError:
        return False
    return True
