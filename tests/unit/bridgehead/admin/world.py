"""The core of an admin client on virtual time, with brokers that are Python functions; no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bridgehead.admin.config import Address, read_config
from bridgehead.admin.core import AdminCore
from bridgehead.admin.credentials import NewLogin
from bridgehead.admin.effects import Complete, Connect, Disconnect, Effect, Send
from bridgehead.admin.errors import ConnectionFailedError
from bridgehead.admin.requests import Plan
from bridgehead.admin.results import Try
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import SPECS
from bridgehead.kafka_wire.codec import decode_request, encode_response
from bridgehead.kafka_wire.framing import FrameBuffer, frame
from bridgehead.kafka_wire.headers import decode_request_header, encode_response_header
from bridgehead.kafka_wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from bridgehead.kafka_wire.messages.metadata import MetadataResponse, MetadataResponseBroker

# Maps a decoded request and its version to the response, or to None for no response.
Handler = Callable[[Any, int], Any]


@dataclass
class Broker:
    """The responses of one broker. A request without a handler gets no response."""

    id: int
    handlers: dict[ApiKey, Handler] = field(default_factory=dict)
    dialect: str = "shipped"
    ranges: Mapping[int, tuple[int, int]] | None = None  # None: all versions of the dialect
    is_up: bool = True

    @property
    def address(self) -> Address:
        return Address(f"broker-{self.id}", 9092)

    def versions(self, request: Any, version: int) -> ApiVersionsResponse:
        specs = SPECS[self.dialect]
        ranges = self.ranges or {
            key: (spec.min_version, spec.max_version)
            for key, spec in specs.items()
            if spec.route is not None
        }
        return ApiVersionsResponse(0, [ApiVersion(key, *span) for key, span in ranges.items()])


class World:
    """Brokers 1 to 3 and the core of one client; records what happens as lines of text."""

    def __init__(
        self, properties: Mapping[str, object] | None = None, login: NewLogin | None = None
    ) -> None:
        self.brokers = {number: Broker(number) for number in (1, 2, 3)}
        self.controller = 1
        self.members: Iterable[int] = (1, 2, 3)
        for broker in self.brokers.values():
            broker.handlers[ApiKey.API_VERSIONS] = broker.versions
            broker.handlers[ApiKey.METADATA] = lambda request, version: self.metadata()
        wanted = {"bootstrap.servers": "broker-1:9092", "reconnect.backoff.ms": 50}
        config = read_config({**wanted, **(properties or {})})
        self.core = AdminCore(config, login, lambda count: 0)
        self.now_ms = 0.0
        self._ticks = 0
        self.lines: list[str] = []
        self.outcomes: dict[int, Try[Any]] = {}
        self._open: dict[int, tuple[Broker, FrameBuffer]] = {}

    def metadata(self) -> MetadataResponse:
        brokers = [
            MetadataResponseBroker(member, *self.brokers[member].address) for member in self.members
        ]
        return MetadataResponse(brokers=brokers, cluster_id="c", controller_id=self.controller)

    def everywhere(self, key: ApiKey, handler: Handler) -> None:
        """Make all brokers answer an API with the same handler."""
        for broker in self.brokers.values():
            broker.handlers[key] = handler

    def start(
        self, plan: Plan[Any], *, timeout_ms: int | None = None, broker: int | None = None
    ) -> int:
        number = self.core.submit(plan, self.now_ms, timeout_ms=timeout_ms, broker=broker)
        self.settle()
        return number

    def run(
        self, plan: Plan[Any], *, timeout_ms: int | None = None, broker: int | None = None
    ) -> Try[Any]:
        """Run a call to its end; time jumps to the next timer."""
        number = self.start(plan, timeout_ms=timeout_ms, broker=broker)
        while number not in self.outcomes:
            wakeup_ms = self.core.wakeup_ms()
            assert wakeup_ms is not None, f"the call hangs after {self.lines}"
            assert wakeup_ms >= self.now_ms, "a timer in the past: the core would spin"
            self.advance_to(wakeup_ms)
        return self.outcomes.pop(number)

    def advance_to(self, time_ms: float) -> None:
        self._ticks += 1
        assert self._ticks < 10_000, "the core asks for ticks and does nothing"
        assert time_ms < 10_000_000, "the core waits for ever"
        self.now_ms = time_ms
        self.core.tick(time_ms)
        self.settle()

    def settle(self) -> None:
        """Carry out effects until none is left."""
        while effects := self.core.effects():
            for effect in effects:
                self._carry_out(effect)

    def say(self, text: str) -> None:
        self.lines.append(f"{self.now_ms:.0f} {text}")

    def cut(self, broker: int) -> None:
        """Close every connection to a broker."""
        for number, (address, _) in list(self._open.items()):
            if address.id == broker:
                del self._open[number]
                error = ConnectionFailedError(f"The broker at {address.address} was cut.")
                self.core.lost(number, error, self.now_ms)
        self.settle()

    def new_lines(self) -> list[str]:
        """Return the lines since the last call."""
        lines, self.lines = self.lines, []
        return lines

    def open_connections(self) -> list[int]:
        """Return the broker of every open connection."""
        return sorted(broker.id for broker, _ in self._open.values())

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Connect(number, address):
                (broker,) = [node for node in self.brokers.values() if node.address == address]
                if not broker.is_up:
                    self.say(f"{broker.id} is down")
                    error = ConnectionFailedError(f"The broker at {address} cannot be reached.")
                    self.core.lost(number, error, self.now_ms)
                    return
                self.say(f"{broker.id} connected")
                self._open[number] = broker, FrameBuffer()
                self.core.connected(number, self.now_ms)
            case Send(number, data):
                broker, frames = self._open[number]
                for payload in frames.receive_data(data):
                    self._receive(number, broker, payload)
            case Disconnect(number):
                broker, _ = self._open.pop(number)
                self.say(f"{broker.id} disconnected")
            case Complete(number, outcome):
                self.outcomes[number] = outcome

    def _receive(self, number: int, broker: Broker, payload: bytes) -> None:
        header, at = decode_request_header(payload, broker.dialect)
        key, version = ApiKey(header.api_key), header.api_version
        self.say(f"{broker.id} {SPECS[broker.dialect][key].name} v{version}")
        request = decode_request(key, version, payload, at, broker.dialect)
        handler = broker.handlers.get(key)
        message = None if handler is None else handler(request, version)
        if message is None or number not in self._open:
            return
        head = encode_response_header(key, version, header.correlation_id)
        if key is ApiKey.API_VERSIONS and message.error_code:
            version = 0  # an error response is in version 0 (KIP-511)
        body = encode_response(key, version, message, broker.dialect)
        for part in (data := frame(head + body))[:7], data[7:]:  # in two reads
            self.core.received(number, part, self.now_ms)
