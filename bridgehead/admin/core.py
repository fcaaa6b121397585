"""The admin client without I/O. Its inputs are bytes, times and calls; its outputs are effects.

The caller passes times in milliseconds of any monotonic clock. After each input the caller takes
the `effects()` and carries them out. The caller also calls `tick` at the time `wakeup_ms()`.

A request goes to the broker that it names. If it names none, the API's row in `kafka_wire.apis`
says whether the request goes to the controller or to any broker. On a drafted listener a change of
a named broker's configs goes to the controller, too (KIP-590). The request is resent after a pause
if the connection ends, if no response comes within `request.timeout.ms`, or if the broker is not
the controller: at most `retries` times, and only until the call times out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from bridgehead.admin.config import Address, AdminConfig
from bridgehead.admin.connection import Response
from bridgehead.admin.credentials import NewLogin
from bridgehead.admin.effects import Complete, Effect
from bridgehead.admin.errors import (
    AdminError,
    AuthenticationError,
    BrokerGoneError,
    InvalidCallError,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
)
from bridgehead.admin.links import FOREVER, Flight, Link, Links
from bridgehead.admin.requests import (
    Attempt,
    BrokerResponse,
    Plan,
    Request,
    Step,
    Wait,
    closed,
    error_codes,
    one,
)
from bridgehead.admin.results import Try
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import DRAFTED_SPECS, Route
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataResponse
from bridgehead.kafka_wire.primitives import WireError

# The timeout in a request is shorter than the time that the client waits for the response: by this
# margin, or by a tenth if that is less. So the broker answers before the client gives up.
_MARGIN_MS: Final = 1_000


@dataclass(slots=True, eq=False)
class _Call:
    id: int
    plan: Plan[Any]
    deadline_ms: float
    broker: int | None  # the broker for every request
    outcomes: list[Try[BrokerResponse] | None] = field(default_factory=list)
    wait_until_ms: float | None = None


@dataclass(slots=True, eq=False)
class _Exchange:
    """One request of a call, from the first attempt to its outcome."""

    call: _Call
    index: int
    request: Request
    began_ms: float
    not_before_ms: float = 0.0
    attempts: int = 0
    resent: bool = field(init=False)  # an earlier attempt got no definite response
    trouble: str = ""  # why the last attempt has no response
    # The broker that must answer the request; None: the API's route decides.
    broker: int | None = field(init=False)
    is_for_controller: bool = field(init=False)

    def __post_init__(self) -> None:
        pinned, request = self.call.broker, self.request
        self.broker = request.broker if pinned is None else pinned
        is_forwarded = DRAFTED_SPECS[request.key].route is Route.FORWARD
        self.is_for_controller = self.broker is None and is_forwarded
        self.resent = request.resent


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The cluster according to Metadata. `controller_id` is -1 while there is no controller."""

    brokers: dict[int, Address]
    controller_id: int
    dialect: str  # of the listener that sent the metadata
    fetched_ms: float


@dataclass(frozen=True, slots=True)
class _FailedRefresh:
    error: AdminError
    at_ms: float


class AdminCore:
    """Calls, connections and the cluster's metadata of one client."""

    def __init__(
        self, config: AdminConfig, new_login: NewLogin | None, choose: Callable[[int], int]
    ) -> None:
        """`choose(n)` returns a number from 0 to n - 1; it selects one of n equal brokers."""
        self._config, self._numbers = config, config.numbers
        self._effects: list[Effect] = []
        self._links: Links[_Exchange] = Links(config, new_login, choose, self._effects)
        self._calls: dict[int, _Call] = {}
        self._waiting: list[_Exchange] = []
        self._cluster: _Cluster | None = None
        self._refresh: _Call | None = None
        self._refresh_not_before_ms = 0.0
        self._failed_refresh: _FailedRefresh | None = None
        self._last_call = 0
        self._now_ms = 0.0
        self._closed = False

    # Inputs

    def submit(
        self,
        plan: Plan[Any],
        now_ms: float,
        *,
        timeout_ms: int | None = None,
        broker: int | None = None,
    ) -> int:
        """Begin a call; return its number, which `Complete` carries.

        `timeout_ms` limits the whole call, by default `default.api.timeout.ms`. With `broker`,
        every request goes to that broker.
        """
        self._now_ms = now_ms
        limit = self._numbers["default.api.timeout.ms"] if timeout_ms is None else timeout_ms
        call = self._begin(plan, limit, broker)
        self._pump()
        return call.id

    def cancel(self, number: int) -> None:
        """Forget a call. A request that was sent may still have an effect."""
        if (call := self._calls.pop(number, None)) is not None:
            call.plan.close()
            self._waiting = [exchange for exchange in self._waiting if exchange.call is not call]

    def connected(self, connection: int, now_ms: float) -> None:
        """Record that a connection is open. On a TLS listener, the handshake is complete too."""
        self._now_ms = now_ms
        self._links.opened(connection)

    def received(self, connection: int, data: bytes, now_ms: float) -> None:
        """Take bytes of a connection."""
        self._now_ms = now_ms
        try:
            responses = self._links.received(connection, data, now_ms)
        except AdminError as error:
            self._drop(connection, error, closed_already=False)
        else:
            for link, response in responses:
                self._respond(self._links.responded(link, response, now_ms), response)
        self._pump()

    def lost(self, connection: int, error: AdminError, now_ms: float) -> None:
        """Record that a connection was closed, or could not be opened."""
        self._now_ms = now_ms
        self._drop(connection, error, closed_already=True)
        self._pump()

    def tick(self, now_ms: float) -> None:
        """Handle the deadlines that have passed and the pauses that have ended."""
        self._now_ms = now_ms
        for exchange, error in list(self._links.tick(now_ms)):
            self._lose(exchange, error)
        for call in list(self._calls.values()):
            end = call.wait_until_ms
            if end is not None and now_ms >= min(end, call.deadline_ms):
                self._end_wait(call, in_time=end <= call.deadline_ms)
        self._pump()

    def close(self) -> None:
        """Close every connection; end every call with ClientClosedError."""
        self._closed = True
        self._waiting.clear()
        for call in list(self._calls.values()):
            self._end(call, Try.new_error(closed()))
        self._links.close()

    # Outputs

    def effects(self) -> list[Effect]:
        """Return the effects since this method was last called, in order."""
        effects = self._effects[:]
        self._effects.clear()
        return effects

    def wakeup_ms(self) -> float | None:
        """Return when `tick` is due next; None if there is nothing to wait for."""
        now_ms = self._now_ms
        times = self._links.due(now_ms, waiting=bool(self._waiting))
        for call in self._calls.values():
            if call.wait_until_ms is not None:
                times += call.wait_until_ms, call.deadline_ms
        for exchange in self._waiting:
            times.append(exchange.call.deadline_ms)
            if exchange.not_before_ms > now_ms:
                times.append(exchange.not_before_ms)
        if self._waiting and self._refresh is None and self._refresh_not_before_ms > now_ms:
            times.append(self._refresh_not_before_ms)
        earliest = min(times, default=FOREVER)
        return None if earliest == FOREVER else earliest

    # Calls

    def _begin(self, plan: Plan[Any], limit_ms: float, broker: int | None) -> _Call:
        self._last_call += 1
        call = _Call(self._last_call, plan, self._now_ms + limit_ms, broker)
        self._calls[call.id] = call
        if self._closed:
            self._end(call, Try.new_error(closed()))
        else:
            self._advance(call, lambda: next(plan))
        return call

    def _advance(self, call: _Call, resume: Callable[[], Step]) -> None:
        """Resume a plan, and record its next requests or its pause."""
        try:
            step = resume()
        except StopIteration as end:
            self._end(call, Try.new_value(end.value))
            return
        except AdminError as error:
            self._end(call, Try.new_error(error))
            return
        except Exception as error:
            self._end(call, Try.new_error(_unusable(error)))
            return
        if isinstance(step, Wait):
            call.wait_until_ms = self._now_ms + step.ms
        elif step:
            call.outcomes = [None] * len(step)
            now_ms = self._now_ms
            self._waiting += [
                _Exchange(call, at, request, now_ms) for at, request in enumerate(step)
            ]
        else:
            self._advance(call, lambda: call.plan.send([]))

    def _end_wait(self, call: _Call, *, in_time: bool) -> None:
        call.wait_until_ms = None
        if in_time:
            self._advance(call, lambda: call.plan.send([]))
        else:
            error = KafkaTimeoutError("The call timed out before its next request.", sent=True)
            self._advance(call, lambda: call.plan.throw(error))

    def _end(self, call: _Call, outcome: Try[Any]) -> None:
        if self._calls.pop(call.id, None) is None:
            return
        call.plan.close()
        if call is self._refresh:
            self._learn(outcome)
        else:
            self._effects.append(Complete(call.id, outcome))

    def _resolve(self, exchange: _Exchange, outcome: Try[BrokerResponse]) -> None:
        """Store the outcome of a request; after the last outcome resume the plan."""
        call = exchange.call
        if call.id not in self._calls:
            return
        call.outcomes[exchange.index] = outcome
        outcomes = [candidate for candidate in call.outcomes if candidate is not None]
        if len(outcomes) == len(call.outcomes):
            self._advance(call, lambda: call.plan.send(outcomes))

    # Requests

    def _pump(self) -> None:
        """Send what can be sent, and fail what can no longer be sent."""
        progress = bool(self._waiting)
        while progress:
            waiting, self._waiting = self._waiting, []
            kept = [exchange for exchange in waiting if not self._dispatch(exchange)]
            progress = bool(self._waiting) or 0 < len(kept) < len(waiting)
            self._waiting = kept + self._waiting

    def _dispatch(self, exchange: _Exchange) -> bool:
        """Try to send a request; return False if it must wait."""
        now_ms = self._now_ms
        if exchange.call.id not in self._calls:
            return True
        if now_ms >= exchange.call.deadline_ms:
            self._resolve(exchange, Try.new_error(self._timed_out(exchange)))
            return True
        if now_ms < exchange.not_before_ms:
            return False
        try:
            address = self._route(exchange)
            if address is None:
                return False
            link = self._links.usable(address, exchange.began_ms, now_ms)
            if link is None:
                return False
            self._send(link, exchange)
        except AdminError as error:
            self._resolve(exchange, Try.new_error(error))
        return True

    def _send(self, link: Link[_Exchange], exchange: _Exchange) -> None:
        request = exchange.request
        if exchange.is_for_controller:
            request = request._replace(broker=None)
        version, dialect = link.protocol.version_of(request)
        left_ms = exchange.call.deadline_ms - self._now_ms
        limit_ms = min(float(self._numbers["request.timeout.ms"]), left_ms)
        timeout_ms = int(limit_ms - min(_MARGIN_MS, limit_ms / 10))
        try:
            message = request.build(Attempt(version, dialect, timeout_ms))
            number = link.protocol.send(request.key, version, message, dialect, request.unread)
        except WireError as error:
            raise InvalidCallError(f"The request cannot be sent: {error}.") from None
        except AdminError:
            raise
        except Exception as error:
            raise _unusable(error) from error
        exchange.attempts += 1
        link.in_flight[number] = Flight(exchange, self._now_ms + limit_ms)
        self._links.flush(link)

    def _respond(self, flight: Flight[_Exchange], response: Response) -> None:
        exchange = flight.exchange
        if flight.abandoned or self._has_moved(exchange, response):
            return
        result = BrokerResponse(response.message, response.version, exchange.resent)
        self._resolve(exchange, Try.new_value(result))

    def _has_moved(self, exchange: _Exchange, response: Response) -> bool:
        """Return whether every element has NOT_CONTROLLER; if so, resend the request."""
        codes = set(error_codes(response.message)) if exchange.is_for_controller else set()
        if ErrorCode.NOT_CONTROLLER not in codes:
            return False
        self._forget_cluster()
        if codes != {ErrorCode.NOT_CONTROLLER}:
            return False  # Some elements are done; the plan sends the others again.
        self._again(exchange, KafkaError(ErrorCode.NOT_CONTROLLER))
        return True

    def _drop(self, connection: int, error: AdminError, *, closed_already: bool) -> None:
        self._forget_cluster()  # the broker may have stopped
        for exchange in self._links.dropped(
            connection, error, self._now_ms, closed_already=closed_already
        ):
            self._lose(exchange, error)

    def _lose(self, exchange: _Exchange, error: AdminError) -> None:
        """Resend a request whose connection broke: it may have had an effect."""
        self._forget_cluster()
        exchange.resent = True
        self._again(exchange, error)

    def _again(self, exchange: _Exchange, error: AdminError) -> None:
        """Resend a request after a pause."""
        if exchange.attempts > self._numbers["retries"]:
            self._resolve(exchange, Try.new_error(error))
            return
        exchange.trouble = str(error)
        exchange.not_before_ms = self._now_ms + self._numbers["retry.backoff.ms"]
        self._waiting.append(exchange)

    def _timed_out(self, exchange: _Exchange) -> KafkaTimeoutError:
        name = DRAFTED_SPECS[exchange.request.key].name
        failed = self._failed_refresh
        reason = exchange.trouble or self._links.last_trouble()
        if not reason and failed is not None:
            reason = str(failed.error)
        if not reason and exchange.is_for_controller:
            reason = "The cluster has no active controller."
        text = f"{name} got no response before the call timed out. {reason}".rstrip()
        return KafkaTimeoutError(text, sent=exchange.attempts > 0)

    # Routes

    def _route(self, exchange: _Exchange) -> Address | None:
        """Return the broker's address; None while metadata must be fetched first.

        Raises:
            AdminError: the broker cannot be found, or metadata cannot be fetched.
        """
        pinned, named = exchange.call.broker, exchange.request.broker
        if pinned is not None and named not in (None, pinned):
            raise InvalidCallError(
                f"The request is for broker {named}, but this client is pinned to {pinned}."
            )
        if exchange.broker is None and not exchange.is_for_controller:
            return self._links.any_of(self._candidates(), self._now_ms)
        cluster = self._current_cluster(exchange)
        if cluster is None:
            return None
        if exchange.request.drafted_goes_to_controller and pinned is None and named is not None:
            exchange.is_for_controller = cluster.dialect == "drafted"
        wanted = None if exchange.is_for_controller else exchange.broker
        address = cluster.brokers.get(cluster.controller_id if wanted is None else wanted)
        if address is None and wanted is not None and cluster.fetched_ms >= exchange.began_ms:
            text = f"Broker {wanted} is not in the cluster's metadata."
            raise BrokerGoneError(text, sent=exchange.attempts > 0)
        if address is None:
            self._forget_cluster()
            self._current_cluster(exchange)
        return address

    def _candidates(self) -> list[Address]:
        """Return the brokers. While no broker can be reached, also return the bootstrap servers."""
        brokers = [] if self._cluster is None else list(self._cluster.brokers.values())
        if brokers and not self._links.have_failed(brokers):
            return brokers
        return list(dict.fromkeys([*brokers, *self._config.bootstrap]))

    def _forget_cluster(self) -> None:
        """Mark the metadata as out of date, so that it is fetched again; keep the addresses."""
        if self._cluster is not None:
            self._cluster = replace(self._cluster, fetched_ms=-FOREVER)

    def _current_cluster(self, exchange: _Exchange) -> _Cluster | None:
        """Return the metadata; None while it is being fetched."""
        cluster = self._cluster
        max_age_ms = self._numbers["metadata.max.age.ms"]
        if cluster is not None and self._now_ms - cluster.fetched_ms <= max_age_ms:
            return cluster
        failed = self._failed_refresh
        if failed is not None and failed.at_ms >= exchange.began_ms:
            raise failed.error
        if self._refresh is None and self._now_ms >= self._refresh_not_before_ms:
            self._refresh_not_before_ms = self._now_ms + self._numbers["retry.backoff.ms"]
            plan = self._fetch_metadata()
            self._refresh = self._begin(plan, self._numbers["request.timeout.ms"], None)
        return None

    @staticmethod
    def _fetch_metadata() -> Plan[tuple[MetadataResponse, str]]:
        """Return the metadata, and the dialect of the listener that sent it."""
        dialects: list[str] = []

        def build(attempt: Attempt) -> MetadataRequest:
            dialects.append(attempt.dialect)
            return MetadataRequest(topics=[], allow_auto_topic_creation=False)

        response = yield from one(Request(ApiKey.METADATA, build, min_version=1))
        return response.message, dialects[-1]

    def _learn(self, outcome: Try[tuple[MetadataResponse, str]]) -> None:
        """Store the result of a refresh."""
        self._refresh = self._failed_refresh = None
        error = outcome.error
        if error is None:
            message, dialect = outcome.get()
            brokers = {
                broker.node_id: Address(broker.host, broker.port) for broker in message.brokers
            }
            self._cluster = _Cluster(brokers, message.controller_id, dialect, self._now_ms)
        elif isinstance(error, AuthenticationError | UnsupportedVersionError):
            self._failed_refresh = _FailedRefresh(error, self._now_ms)


def _unusable(error: Exception) -> InvalidCallError:
    """Return the error of a call whose arguments have a wrong type."""
    invalid = InvalidCallError(f"Check the arguments of the call: {type(error).__name__}: {error}.")
    invalid.__cause__ = error
    return invalid
