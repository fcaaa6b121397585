"""The connections of a client: which are open, which requests they carry, when to reconnect.

A link is one connection. It is retired when its login is about to expire, when it has been idle for
too long, or when a request on it got no response in time. A retired link gets no further requests
and is closed after its last response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from bridgehead.admin.config import Address, AdminConfig
from bridgehead.admin.connection import BrokerConnection, Response, Stage
from bridgehead.admin.credentials import NewLogin
from bridgehead.admin.effects import Connect, Disconnect, Effect, Send
from bridgehead.admin.errors import (
    AdminError,
    AuthenticationError,
    ConnectionFailedError,
    UnsupportedVersionError,
)

X = TypeVar("X")  # the value that a link stores with each request

IN_FLIGHT_MAX: Final = 5  # requests on one connection, as in Kafka's clients
FOREVER: Final = float("inf")
_SESSION_USED: Final = 0.85  # after this share of a login's lifetime the connection is replaced


@dataclass(slots=True, eq=False)
class Flight(Generic[X]):
    """A request on a link. `abandoned`: no response came in time, and a late one is ignored."""

    exchange: X
    deadline_ms: float
    abandoned: bool = False


@dataclass(slots=True, eq=False)
class Link(Generic[X]):
    """A connection to a broker."""

    id: int
    address: Address
    protocol: BrokerConnection
    used_ms: float
    setup_deadline_ms: float
    in_flight: dict[int, Flight[X]] = field(default_factory=dict)
    muted_until_ms: float = 0.0
    expires_ms: float = FOREVER
    retired: bool = False

    @property
    def is_ready(self) -> bool:
        """True when versions are negotiated and the login is complete."""
        return self.protocol.stage is Stage.READY


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why an address could not be used, and when it is tried again."""

    error: AdminError
    failures: int
    at_ms: float
    until_ms: float

    @property
    def is_final(self) -> bool:
        """True if another attempt would also fail."""
        return isinstance(self.error, AuthenticationError | UnsupportedVersionError)


class Links(Generic[X]):
    """All connections of a client."""

    def __init__(
        self,
        config: AdminConfig,
        new_login: NewLogin | None,
        choose: Callable[[int], int],
        effects: list[Effect],
    ) -> None:
        """Effects are appended to `effects`."""
        self._config, self._new_login, self._choose = config, new_login, choose
        self._numbers = config.numbers
        self._effects = effects
        self._links: dict[int, Link[X]] = {}
        self._troubles: dict[Address, Trouble] = {}
        self._next = 0

    def usable(self, address: Address, began_ms: float, now_ms: float) -> Link[X] | None:
        """Return the link to `address` if it can take a request now, else None.

        If there is no link, open one, but not during the pause after a failure.

        Raises:
            AdminError: since `began_ms`, the login or the negotiation at this address has failed.
        """
        for link in self._links.values():
            if link.address == address and not link.retired:
                free = len(link.in_flight) < IN_FLIGHT_MAX and link.muted_until_ms <= now_ms
                return link if link.is_ready and free else None
        trouble = self._troubles.get(address)
        if trouble is not None and trouble.is_final and trouble.at_ms >= began_ms:
            raise trouble.error
        if trouble is None or trouble.until_ms <= now_ms:
            self._open(address, now_ms)
        return None

    def any_of(self, addresses: Sequence[Address], now_ms: float) -> Address:
        """Return the address for a request that any broker can answer."""
        open_links = [
            link for link in self._links.values() if not link.retired and link.address in addresses
        ]
        if ready := [
            link for link in open_links if link.is_ready and link.muted_until_ms <= now_ms
        ]:
            return min(ready, key=lambda link: len(link.in_flight)).address
        if open_links:
            return open_links[0].address
        ranks = {address: self._rank(address, now_ms) for address in addresses}
        best = [address for address in addresses if ranks[address] == min(ranks.values())]
        return best[self._choose(len(best))]

    def have_failed(self, addresses: Iterable[Address]) -> bool:
        """Return whether every address has failed since a connection to it was last ready."""
        return all(address in self._troubles for address in addresses)

    def last_trouble(self) -> str:
        """Return the text of the latest failure of a connection; "" if there was none."""
        latest = max(self._troubles.values(), key=lambda trouble: trouble.at_ms, default=None)
        return "" if latest is None else str(latest.error)

    def opened(self, number: int) -> None:
        """Begin to negotiate versions."""
        if (link := self._links.get(number)) is not None:
            link.protocol.opened()
            self.flush(link)

    def received(self, number: int, data: bytes, now_ms: float) -> list[tuple[Link[X], Response]]:
        """Take bytes; return the responses. Raises AdminError: the connection must be dropped."""
        link = self._links.get(number)
        if link is None:
            return []
        was_ready = link.is_ready
        responses = link.protocol.receive(data)
        self.flush(link)
        if not was_ready and link.is_ready:
            self._troubles.pop(link.address, None)
            link.used_ms = now_ms
            if link.protocol.session_lifetime_ms:
                link.expires_ms = now_ms + _SESSION_USED * link.protocol.session_lifetime_ms
        return [(link, response) for response in responses]

    def responded(self, link: Link[X], response: Response, now_ms: float) -> Flight[X]:
        """Return the request that a response answers, and remove it from the link."""
        flight = link.in_flight.pop(response.correlation_id)
        link.used_ms = now_ms
        throttle_ms = getattr(response.message, "throttle_time_ms", 0)
        if throttle_ms > 0:  # KIP-219: the client waits before its next request
            link.muted_until_ms = max(link.muted_until_ms, now_ms + throttle_ms)
        if link.retired:
            self._close_if_done(link)
        return flight

    def dropped(
        self, number: int, error: AdminError, now_ms: float, *, closed_already: bool
    ) -> list[X]:
        """Forget a connection; return the requests that have no response."""
        link = self._links.pop(number, None)
        if link is None:
            return []
        if not closed_already:
            self._effects.append(Disconnect(link.id))
        # It is not a failure if the broker closes an idle connection.
        if not link.is_ready or link.in_flight:
            self._note(link.address, error, now_ms)
        return [request.exchange for request in link.in_flight.values() if not request.abandoned]

    def tick(self, now_ms: float) -> Iterator[tuple[X, AdminError]]:
        """Close and retire links; yield the requests that timed out or whose link is lost."""
        for link in list(self._links.values()):
            if not link.is_ready and now_ms >= link.setup_deadline_ms:
                limit = self._numbers["socket.connection.setup.timeout.ms"]
                error = ConnectionFailedError(
                    f"The broker at {link.address} did not accept a connection within {limit} ms."
                )
                for exchange in self.dropped(link.id, error, now_ms, closed_already=False):
                    yield exchange, error
                continue
            for flight in list(link.in_flight.values()):
                if not flight.abandoned and now_ms >= flight.deadline_ms:
                    flight.abandoned = link.retired = True
                    late = ConnectionFailedError(
                        f"The broker at {link.address} did not answer in time."
                    )
                    self._note(link.address, late, now_ms)
                    yield flight.exchange, late
            if now_ms >= link.expires_ms:
                link.retired = True
            if not link.in_flight and now_ms >= link.used_ms + self._idle_ms and link.is_ready:
                link.retired = True
            self._close_if_done(link)

    def due(self, now_ms: float, *, waiting: bool) -> list[float]:
        """Return the times at which `tick` has work. `waiting`: some requests wait for a link."""
        times: list[float] = []
        for link in self._links.values():
            if not link.is_ready:
                times.append(link.setup_deadline_ms)
                continue
            for flight in link.in_flight.values():
                if not flight.abandoned:
                    times.append(flight.deadline_ms)
            if not link.in_flight:
                times += link.expires_ms, link.used_ms + self._idle_ms
            if waiting and link.muted_until_ms > now_ms:
                times.append(link.muted_until_ms)
        if waiting:
            times += [
                trouble.until_ms for trouble in self._troubles.values() if trouble.until_ms > now_ms
            ]
        return times

    def flush(self, link: Link[X]) -> None:
        """Send what the connection has to send."""
        if link.protocol.outgoing:
            self._effects.append(Send(link.id, bytes(link.protocol.outgoing)))
            link.protocol.outgoing.clear()

    def close(self) -> None:
        """Close every connection."""
        self._effects += [Disconnect(number) for number in self._links]
        self._links.clear()

    @property
    def _idle_ms(self) -> int:
        return self._numbers["connections.max.idle.ms"]

    def _open(self, address: Address, now_ms: float) -> None:
        self._next += 1
        login = self._new_login() if self._new_login is not None else None
        protocol = BrokerConnection(address, self._config.client_id, login)
        deadline = now_ms + self._numbers["socket.connection.setup.timeout.ms"]
        self._links[self._next] = Link(self._next, address, protocol, now_ms, deadline)
        self._effects.append(Connect(self._next, address))

    def _close_if_done(self, link: Link[X]) -> None:
        """Close a retired link after its last request; abandoned requests do not count."""
        if link.retired and all(request.abandoned for request in link.in_flight.values()):
            self._links.pop(link.id, None)
            self._effects.append(Disconnect(link.id))

    def _note(self, address: Address, error: AdminError, now_ms: float) -> None:
        trouble = self._troubles.get(address)
        failures = 1 if trouble is None else trouble.failures + 1
        pause = min(
            self._numbers["reconnect.backoff.ms"] * 2 ** min(failures - 1, 16),
            self._numbers["reconnect.backoff.max.ms"],
        )
        self._troubles[address] = Trouble(error, failures, now_ms, now_ms + pause)

    def _rank(self, address: Address, now_ms: float) -> tuple[float, int]:
        """Return when an address can be tried and how often it has failed; the lowest is best."""
        trouble = self._troubles.get(address)
        return (now_ms, 0) if trouble is None else (max(trouble.until_ms, now_ms), trouble.failures)
