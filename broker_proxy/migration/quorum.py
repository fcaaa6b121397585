"""The voters of a KRaft quorum, and a connection that follows the one that is active controller."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bridgehead.admin.config import Address
from bridgehead.admin.errors import AdminError
from bridgehead.kafka_wire.api_key import ApiKey
from data_plane.replication.peer import PeerConnection, PeerSecurity

_VOTER: Final = re.compile(r"(\d{1,10})@(\[[0-9A-Fa-f:.]+\]|[^\s:@\[\],]+):(\d{1,5})")
_PORT_MAX: Final = 65535
_ID_MAX: Final = 2**31 - 1
Connect = Callable[[Address, PeerSecurity, float], Awaitable[PeerConnection]]


@dataclass(frozen=True, slots=True)
class Voter:
    """One controller of the quorum."""

    node_id: int
    address: Address

    def __str__(self) -> str:
        """Return Kafka's notation."""
        return f"{self.node_id}@{self.address}"


def parse_voters(text: str) -> tuple[Voter, ...]:
    """Parse `id@host:port,...`, the value of controller.quorum.voters.

    Raises:
        ValueError: an entry has another form, or an id occurs twice. The text is a sentence.
    """
    voters = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        match = _VOTER.fullmatch(entry)
        if match is None or int(match[1]) > _ID_MAX or not 0 < int(match[3]) <= _PORT_MAX:
            raise ValueError(f"{entry!r} is not a controller: write ID@HOST:PORT.")
        voters.append(Voter(int(match[1]), Address(match[2].strip("[]"), int(match[3]))))
    ids = [voter.node_id for voter in voters]
    if len(set(ids)) < len(ids):
        raise ValueError(f"{text!r} names a controller twice: give each its own id.")
    return tuple(voters)


class Quorum:
    """The voter that this broker takes for the active controller. All connections share it."""

    def __init__(self, voters: tuple[Voter, ...]) -> None:
        self.voters = voters
        self._at = 0
        self._connections: list[QuorumConnection] = []

    @property
    def current(self) -> Voter:
        """The voter to ask next."""
        return self.voters[self._at]

    def join(self, connection: QuorumConnection) -> None:
        """Add a connection, which is closed when another voter becomes active."""
        self._connections.append(connection)

    def is_not_active(self, voter: Voter) -> None:
        """Take the next voter for the active controller, unless that was done already."""
        if voter is self.current:
            self._at = (self._at + 1) % len(self.voters)

    def is_active(self, voter: Voter) -> None:
        """Close the connections to other voters: this one has answered as active controller.

        A frozen controller would otherwise keep its requests until they time out.
        """
        self._at = self.voters.index(voter)
        for connection in self._connections:
            connection.leave(voter)


class NoActiveControllerError(Exception):
    """The voter cannot be reached, or is not the active controller. Ask again."""


class QuorumConnection:
    """One connection to the active controller, opened when it is needed. One request at a time."""

    def __init__(
        self,
        quorum: Quorum,
        security: PeerSecurity,
        connect: Connect = PeerConnection.open,
    ) -> None:
        self._quorum = quorum
        self._security = security
        self._connect = connect
        self._turn = asyncio.Lock()
        self._peer: PeerConnection | None = None
        self._voter: Voter | None = None
        quorum.join(self)

    async def request(
        self,
        key: ApiKey,
        message: Any,
        timeout_s: float,
        is_rejection: Callable[[Any], bool],
    ) -> Any:
        """Send a request in the newest version that both sides have; return the response.

        `is_rejection` tells whether a response means that the voter is not the active controller.

        Raises:
            NoActiveControllerError: there was no response, or a rejection. The next request goes to
                the next voter.
        """
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                await self._turn.acquire()
        except TimeoutError:
            raise NoActiveControllerError("earlier requests are still waiting") from None
        try:
            return await self._send(key, message, ends_s, is_rejection)
        finally:
            self._turn.release()

    async def _send(
        self, key: ApiKey, message: Any, ends_s: float, is_rejection: Callable[[Any], bool]
    ) -> Any:
        loop = asyncio.get_running_loop()
        if self._voter is not self._quorum.current or (self._peer and not self._peer.is_open):
            self.close()
        voter = self._voter = self._quorum.current
        try:
            peer = self._peer
            if peer is None:
                left_s = max(ends_s - loop.time(), 0)
                peer = await self._connect(voter.address, self._security, left_s)
                if self._voter is not voter:  # Another voter became active meanwhile.
                    peer.close()
                    raise NoActiveControllerError(f"{voter} is no longer the active controller")
                self._peer = peer
            response = await peer.request(key, message, max(ends_s - loop.time(), 0))
        except AdminError as error:
            self.close()
            self._quorum.is_not_active(voter)
            raise NoActiveControllerError(str(error)) from None
        except BaseException:  # cancelled: the next response would belong to this request
            self.close()
            raise
        if is_rejection(response):
            self.close()
            self._quorum.is_not_active(voter)
            raise NoActiveControllerError(f"{voter} is not the active controller")
        return response

    @property
    def api_ranges(self) -> Mapping[int, tuple[int, int]]:
        """The versions that the controller supports, by API key; empty while not connected."""
        return self._peer.api_ranges if self._peer is not None else {}

    def confirm(self) -> None:
        """The voter of the last response is the active controller: tell the other connections."""
        if self._voter is not None:
            self._quorum.is_active(self._voter)

    def leave(self, active: Voter) -> None:
        """Close the connection if it is to another voter. A request in flight then fails."""
        if self._voter is not active:
            self.close()

    def close(self) -> None:
        """Close the connection. The next request opens another one."""
        peer, self._peer, self._voter = self._peer, None, None
        if peer is not None:
            peer.close()
