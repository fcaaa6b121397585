"""A broker's listeners and forwarding without the rest of a node.

The sockets and the channel to the controller are real. The tests play the controller and the
clients.
"""

from __future__ import annotations

import asyncio
import struct
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from bridgehead.kafka_wire.codec import encode_request, encode_response
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_request_header,
    encode_request_header,
    encode_response_header,
)
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from bridgehead.raw_client.asynchronous import AsyncConnection
from broker_proxy.apis.admin.api_versions import ApiVersions
from broker_proxy.apis.admin.envelope import EnvelopeApi as ClientEnvelope
from broker_proxy.authentication.listener_security import Listener, LoginRequirements
from broker_proxy.client_request import ClientRequest
from broker_proxy.connections.admission import Admission
from broker_proxy.connections.client_socket import ConnectionServices, Limits
from broker_proxy.connections.connection_quotas import ConnectionQuotas
from broker_proxy.connections.connection_rates import ConnectionRates
from broker_proxy.connections.logins import Logins
from broker_proxy.connections.request_log import RequestLog
from broker_proxy.connections.request_memory import RequestMemory
from broker_proxy.connections.server import KafkaServer
from broker_proxy.forwarding.manager import ForwardingManager, KnownController
from broker_proxy.requests.dispatch import Dispatcher
from broker_proxy.requests.relay import Relay
from broker_proxy.requests.routing import ROUTING_TABLES
from broker_proxy.requests.split import Writes
from cluster_model.acls.authorization import allow_everything
from cluster_model.principal import KafkaPrincipal
from envelope.channel import ControllerChannel
from envelope.messages import Envelope, EnvelopeReply, Hello
from envelope.principal_serde import DefaultPrincipalSerde
from envelope.server import BrokerPeer, EnvelopeServer, serve_envelopes
from event_log.events import Event
from event_log.text_log import Level, TextLog
from metrics.node_metrics import NodeMetrics

API_VERSIONS = encode_request_header(RequestHeader(18, 0, 7, "c"))
RESPONSE_BYTES = 14 + 6 * len(ROUTING_TABLES["shipped"])  # the response to API_VERSIONS


class Controller:
    """Answers CreateTopics without errors. It sends replies only while `go` is set."""

    def __init__(self) -> None:
        self.seen: list[Envelope] = []
        self.go = asyncio.Event()
        self.go.set()

    async def handle(self, envelope: Envelope, sender: BrokerPeer) -> EnvelopeReply:
        self.seen.append(envelope)
        await self.go.wait()
        header, _ = decode_request_header(envelope.request_header)
        head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
        body = encode_response(header.api_key, header.api_version, CreateTopicsResponse())
        return EnvelopeReply(0, head + body, envelope.identity.sequence)

    def connected(self, peer: BrokerPeer) -> None:
        pass

    def disconnected(self, peer: BrokerPeer) -> None:
        pass

    def rejected(self, hello: Hello, principal: KafkaPrincipal | None, reason: str) -> None:
        raise AssertionError(reason)

    def batch_received(self, peer: BrokerPeer, lowest_unfinished: int, applied_zxid: int) -> None:
        pass


class Memory:
    """An event log in memory; `flushed` is the number of events at the last flush."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.flushed = 0
        self.before_flush: Callable[[], None] = lambda: None

    def append(self, event: Event) -> None:
        self.events.append(event)

    def flush(self) -> None:
        self.before_flush()
        self.flushed = len(self.events)


class Broker:
    """Listeners, forwarding and two local APIs: ApiVersions, and Envelope from clients."""

    def __init__(self, **limits: float) -> None:
        self.log = Memory()
        self.closed: list[ControllerChannel] = []
        metrics = NodeMetrics(CollectorRegistry(), now_s=time.monotonic)
        self.forwarding = ForwardingManager(
            broker_id=2,
            incarnation="inc",
            serde=DefaultPrincipalSerde(),
            request_timeout_ms=10_000,
            log=self.log,
            now_s=time.monotonic,
            redirected=metrics.message_redirected,
        )
        dispatcher = Dispatcher(
            local_apis={18: ApiVersions(ROUTING_TABLES, lambda: 0), 58: _envelopes_close()},
            writes=Writes(
                Relay(
                    self.forwarding,
                    is_controller=lambda: False,
                    image_zxid=lambda: 0,
                    now_ns=time.monotonic_ns,
                    metrics=metrics,
                ),
                {},
                image_zxid=lambda: 0,
            ),
            forwarding_enabled=True,
            is_controller=lambda: False,
            image_zxid=lambda: 0,
            now_ns=time.monotonic_ns,
            log=self.log,
            metrics=metrics,
        )
        chosen: dict[str, Any] = {"frame_bytes_max": 1_000_000, "idle_ms_max": 600_000} | limits
        rates = ConnectionRates(11, 1, time.monotonic)
        self.quotas = ConnectionQuotas(
            ("PLAINTEXT", "SSL"), None, samples=11, window_s=1, now_s=time.monotonic
        )
        self.admission = Admission(self.quotas, rates, time.monotonic)
        services = ConnectionServices(
            dispatcher=dispatcher,
            logins=Logins(self.log, metrics, wall_ms=lambda: int(time.time() * 1000)),
            limits=Limits(**chosen),
            log=self.log,
            request_log=RequestLog(
                TextLog(Path("unused"), "", Level.OFF),
                now_ns=time.monotonic_ns,
                wall_ms=lambda: int(time.time() * 1000),
            ),
            memory=RequestMemory(chosen["frame_bytes_max"], chosen["frame_bytes_max"]),
            now_s=time.monotonic,
            now_ns=time.monotonic_ns,
        )
        self.server = KafkaServer(
            services=services, request_prefix="2.boot", admission=self.admission
        )
        self.channel: ControllerChannel | None = None
        self.requirements = LoginRequirements()  # replaceable before `start`
        self.metrics = metrics
        self.port = 0

    async def start(self) -> None:
        protocol = "SSL" if self.requirements.tls else "PLAINTEXT"
        listener = await self.server.bind(
            Listener(protocol, protocol, "127.0.0.1", 0), self.requirements
        )
        self.port = listener.port
        await self.server.serve()

    def follow(self, controller: EnvelopeServer, controller_id: int = 1) -> None:
        """Open a channel, as the node does when the controller changes."""
        self.channel = ControllerChannel(
            f"127.0.0.1:{controller.port}",
            Hello(2, "inc"),
            on_update=lambda update: None,
            on_closed=lambda: self.forwarding.set_target(None),
            lowest_unfinished=lambda: self.forwarding.lowest_unfinished,
            applied_zxid=lambda: 0,
        )
        self.forwarding.set_target(KnownController(self.channel, controller_id, is_local=False))

    async def connect(self) -> AsyncConnection:
        return await AsyncConnection.open(f"127.0.0.1:{self.port}")


@asynccontextmanager
async def running(
    controller: Controller | None = None, **limits: int
) -> AsyncIterator[tuple[Broker, Controller]]:
    controller = controller or Controller()
    envelopes = await serve_envelopes("127.0.0.1", 0, controller)
    broker = Broker(**limits)
    await broker.start()
    broker.follow(envelopes)
    try:
        yield broker, controller
    finally:
        await broker.server.stop(0)
        assert broker.channel is not None
        await broker.channel.close()
        await envelopes.stop()


def create(correlation_id: int, *names: str) -> bytes:
    topics = [CreatableTopic(name=name, num_partitions=1) for name in names or ["orders"]]
    message = CreateTopicsRequest(topics=topics)
    header = RequestHeader(19, 5, correlation_id, "c")
    return encode_request_header(header) + encode_request(19, 5, message)


def correlation_id(reply: bytes | None) -> int:
    assert reply is not None
    return struct.unpack_from(">i", reply)[0]


async def _no_response(_request: ClientRequest) -> bytes | None:
    raise AssertionError("a client's Envelope was opened")


def _envelopes_close() -> ClientEnvelope:
    """Return a handler of Envelopes that closes the client's connection."""
    return ClientEnvelope(
        between_brokers=None,
        authorize_for=lambda _: allow_everything,
        is_controller=lambda: False,
        serde=DefaultPrincipalSerde(),
        execute=_no_response,
        rejected=lambda *_: None,
    )


async def until(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.005)


# One end of a channel in a process of its own, for tests that freeze or kill this process.

sys.path.insert(0, str(Path(__file__).parents[2]))


class Responding:
    """Answers each Envelope with the body of its request."""

    async def handle(self, envelope: Envelope, sender: BrokerPeer) -> EnvelopeReply:
        return EnvelopeReply(0, envelope.request_data, envelope.identity.sequence)

    def connected(self, peer: BrokerPeer) -> None:
        pass

    def disconnected(self, peer: BrokerPeer) -> None:
        pass

    def rejected(self, hello: Hello, principal: object, reason: str) -> None:
        pass

    def batch_received(self, peer: BrokerPeer, lowest_unfinished: int, applied_zxid: int) -> None:
        pass


async def _controller() -> None:
    server = await serve_envelopes("127.0.0.1", 0, Responding())
    print(server.port, flush=True)
    await asyncio.Event().wait()


async def _broker(port: int) -> None:
    closed = asyncio.Event()
    ControllerChannel(
        f"127.0.0.1:{port}",
        Hello(9, "child"),
        on_update=lambda update: None,
        on_closed=closed.set,
        lowest_unfinished=lambda: 1,
        applied_zxid=lambda: 0,
    )
    print("open", flush=True)
    await closed.wait()
    print("closed", flush=True)


if __name__ == "__main__":
    asyncio.run(_controller() if sys.argv[1] == "controller" else _broker(int(sys.argv[2])))
