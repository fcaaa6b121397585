"""The dispatcher relays, replaces, merges or omits responses, and writes events about them."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest
from prometheus_client import CollectorRegistry

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS, Route
from bridgehead.kafka_wire.codec import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import (
    decode_response_header,
    encode_response_header,
)
from bridgehead.kafka_wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from bridgehead.kafka_wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from bridgehead.kafka_wire.messages.fetch import FetchRequest, ReplicaState
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from broker_proxy.apis.admin.alter_configs_split import (
    AlterConfigsSplit,
    IncrementalAlterConfigsSplit,
)
from broker_proxy.client_request import ClientRequest
from broker_proxy.forwarding.manager import ForwardingManager, KnownController
from broker_proxy.requests.dispatch import Dispatcher
from broker_proxy.requests.relay import Relay
from broker_proxy.requests.split import Writes
from cluster_model.client import Client
from envelope.messages import Envelope, EnvelopeReply
from envelope.principal_serde import DefaultPrincipalSerde
from event_log.events import Event, RequestReceived, Responded
from metrics.names import REQUESTS
from metrics.node_metrics import NodeMetrics
from tests.unit.broker_proxy.client_requests import a_request

DESCRIBE_CLUSTER = encode_request(60, 0, DescribeClusterRequest())
EMPTY = EnvelopeReply(0, b"", 0)
CREATED = encode_response_header(19, 5, 9) + encode_response(
    19, 5, CreateTopicsResponse(topics=[CreatableTopicResult(name="orders", error_code=0)])
)
LOCAL = [key for key, spec in API_SPECS.items() if spec.route is Route.LOCAL]
WITHOUT_METADATA = ("ApiVersions", "SaslHandshake", "SaslAuthenticate")


@dataclass
class Memory:
    """An event log in memory."""

    events: list[Event] = field(default_factory=list)

    def append(self, event: Event) -> None:
        self.events.append(event)

    def flush(self) -> None:
        pass


@dataclass
class FixedLink:
    """Gives every Envelope the same reply."""

    response: EnvelopeReply
    sent: list[Envelope] = field(default_factory=list)

    def send(self, envelope: Envelope) -> asyncio.Future[EnvelopeReply]:
        self.sent.append(envelope)
        future: asyncio.Future[EnvelopeReply] = asyncio.get_running_loop().create_future()
        future.set_result(self.response)
        return future


class DescribesCluster:
    """A local API that returns `end`, or raises it if it is an exception."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_CLUSTER

    def __init__(self, end: Any) -> None:
        self._end = end

    async def handle(self, request: ClientRequest, message: Any) -> Any:
        if isinstance(self._end, Exception):
            raise self._end
        return self._end


class KeepsFirst:
    """A split API that answers the first resource and forwards the others."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_CONFIGS

    async def split(
        self, request: ClientRequest, message: Any, *, is_wrapped: bool = False
    ) -> tuple[Any, Any | None]:
        if is_wrapped:
            return None, message
        if message.resources[0].resource_name == "faulty":
            raise RuntimeError("a fault in a split")
        rest = message.resources[1:]
        return message.resources[0].resource_name, (
            AlterConfigsRequest(resources=rest) if rest else None
        )

    def merge(self, request: ClientRequest, message: Any, local: Any, forwarded: Any | None) -> Any:
        here = AlterConfigsResourceResponse(resource_type=4, resource_name=local, error_code=42)
        there = forwarded.responses if forwarded else []
        return AlterConfigsResponse(responses=[here, *there])


@dataclass
class Broker:
    """A dispatcher over a link with a fixed reply."""

    link_response: EnvelopeReply = EMPTY
    local: Any = None
    is_controller: bool = False
    forwarding_enabled: bool = True
    read_gate: Any = None
    request_time: Any = None
    log: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        self.link = FixedLink(self.link_response)
        self.metrics = NodeMetrics(CollectorRegistry(), now_s=time.monotonic)
        manager = ForwardingManager(
            broker_id=1,
            incarnation="i",
            serde=DefaultPrincipalSerde(),
            request_timeout_ms=100,
            log=self.log,
            now_s=time.monotonic,
            redirected=self.metrics.message_redirected,
        )
        manager.set_target(KnownController(self.link, 3, self.is_controller))
        self.dispatcher = Dispatcher(
            local_apis={60: DescribesCluster(self.local)},
            writes=Writes(
                Relay(
                    manager,
                    is_controller=lambda: self.is_controller,
                    image_zxid=lambda: 42,
                    now_ns=time.monotonic_ns,
                    metrics=self.metrics,
                ),
                {33: KeepsFirst()},
                image_zxid=lambda: 42,
            ),
            forwarding_enabled=self.forwarding_enabled,
            is_controller=lambda: self.is_controller,
            image_zxid=lambda: 42,
            now_ns=time.monotonic_ns,
            log=self.log,
            metrics=self.metrics,
            read_gate=self.read_gate,
            request_time=self.request_time,
        )

    def last(self) -> Responded:
        event = self.log.events[-1]
        assert isinstance(event, Responded)
        return event

    def counts(self) -> Mapping[str, float]:
        return self.metrics.snapshot()


def _request(key: int, version: int, body: bytes) -> ClientRequest:
    return a_request(key, version, body, request_id="1.b.1.1.9", client_id="client")


def _create(version: int = 5) -> ClientRequest:
    message = CreateTopicsRequest(topics=[CreatableTopic(name="orders", num_partitions=1)])
    return _request(19, version, encode_request(19, version, message))


def _codes(reply: bytes, version: int = 5) -> list[tuple[str, int, str | None]]:
    correlation_id, at = decode_response_header(19, version, reply)
    assert correlation_id == 9
    response = decode_response(19, version, reply, at)
    return [(t.name, t.error_code, t.error_message) for t in response.topics]


async def test_the_inner_response_is_relayed_unchanged() -> None:
    response = CreateTopicsResponse(topics=[CreatableTopicResult(name="orders", error_code=36)])
    inner = encode_response_header(19, 5, 9) + encode_response(19, 5, response)
    broker = Broker(EnvelopeReply(0, inner, 1234))
    assert await broker.dispatcher.handle(_create()) == inner
    assert (broker.last().zxid, broker.last().error, broker.last().route) == (1234, None, "FORWARD")
    assert broker.counts()["num_messages_redirected_count"] == 1
    assert broker.counts()["num_client_forwarding_to_controller_count"] == 0


async def test_a_connection_counts_while_it_waits_for_the_controller() -> None:
    """Two requests of one connection; the controller's own broker waits for no other node."""
    for is_controller, waiting, forwarded in ((False, 1, 2), (True, 0, 0)):
        broker = Broker(is_controller=is_controller)
        replies: list[asyncio.Future[EnvelopeReply]] = []

        def send(
            envelope: Envelope, replies: list[asyncio.Future[EnvelopeReply]] = replies
        ) -> asyncio.Future[EnvelopeReply]:
            replies.append(asyncio.get_running_loop().create_future())
            return replies[-1]

        broker.link.send = send  # type: ignore[method-assign]
        handled = [asyncio.create_task(broker.dispatcher.handle(_create())) for _ in range(2)]
        while len(replies) < 2:
            await asyncio.sleep(0)
        counts = broker.counts()
        assert counts["num_client_forwarding_to_controller_count"] == waiting
        assert counts["bridgehead_client_requests_forwarded_total"] == forwarded
        assert (counts["num_client_forwarding_to_controller_rate"] > 0) is not is_controller
        for reply in replies:
            reply.set_result(EnvelopeReply(31, None, 0))
        await asyncio.gather(*handled)
        assert broker.counts()["num_client_forwarding_to_controller_count"] == 0


async def test_a_response_is_recorded_after_the_previous_response() -> None:
    broker = Broker()
    earlier: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    handled = asyncio.create_task(broker.dispatcher.handle(_create(), earlier))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not any(isinstance(event, Responded) for event in broker.log.events)
    earlier.set_result(None)
    await handled
    assert broker.last().request_id == "1.b.1.1.9"


@pytest.mark.parametrize("key", [33, 39, 40, 44, 51])
async def test_events_have_no_digest_of_a_body_that_may_hold_a_secret(key: int) -> None:
    """Passwords, HMACs and credentials could be guessed from a digest."""
    broker = Broker()
    spec = API_SPECS[key]
    body = encode_request(key, spec.max_version, spec.request())
    await broker.dispatcher.handle(_request(key, spec.max_version, body))
    assert _digest(broker) is None
    await broker.dispatcher.handle(_create())
    assert _digest(broker) == hashlib.sha256(_create().body).hexdigest()


@pytest.mark.parametrize(("replica", "events"), [(-1, 2), (2, 0)])
async def test_fetch_requests_of_replicas_are_not_recorded(replica: int, events: int) -> None:
    """Snapshots of the metrics omit these requests, so that counters equal events (property K1)."""
    broker = Broker()
    for version in (12, 17):
        broker.log.events.clear()
        fetch = FetchRequest(replica_id=replica, replica_state=ReplicaState(replica_id=replica))
        await broker.dispatcher.handle(_request(1, version, encode_request(1, version, fetch)))
        assert len(broker.log.events) == events
    counted = sum(n for name, n in broker.counts().items() if name.startswith(REQUESTS.name))
    assert counted == events


def _digest(broker: Broker) -> str | None:
    received = [event for event in broker.log.events if isinstance(event, RequestReceived)]
    return received[-1].body_sha256


@pytest.mark.parametrize("data", [None, CREATED], ids=("null", "data"))
@pytest.mark.parametrize(
    ("outer", "code"), [(31, -1), (97, -1), (42, -1), (7, 7), (41, 7)], ids=lambda c: str(c)
)
async def test_an_error_of_the_envelope_becomes_an_error_of_the_api(
    outer: int, code: int, data: bytes | None
) -> None:
    broker = Broker(EnvelopeReply(outer, data, 0))
    reply = await broker.dispatcher.handle(_create())
    assert reply is not None
    assert _codes(reply) == [("orders", code, None)]
    assert broker.last().error == code


async def test_a_malformed_inner_response_is_an_unknown_server_error() -> None:
    reply = await Broker(EnvelopeReply(0, b"abc", 5)).dispatcher.handle(_create())
    assert reply is not None
    assert _codes(reply) == [("orders", -1, None)]


async def test_a_version_that_the_controller_does_not_know_closes_the_connection() -> None:
    broker = Broker(EnvelopeReply(35, None, 0))
    assert await broker.dispatcher.handle(_create()) is None
    assert (broker.last().closed, broker.last().error) == (True, 35)


async def test_a_malformed_write_closes_the_connection_and_is_not_forwarded() -> None:
    broker = Broker()
    assert await broker.dispatcher.handle(_request(19, 5, _create().body[:-3])) is None
    assert broker.link.sent == []
    assert broker.last().closed


async def test_an_unserved_api_closes_the_connection() -> None:
    broker = Broker()
    assert await broker.dispatcher.handle(_request(7, 1, b"\0\0\0\1")) is None
    received = broker.log.events[0]
    assert isinstance(received, RequestReceived)
    assert (received.route, broker.last().closed) == ("CLOSE", True)


class Gate:
    """A read gate that is open or closed."""

    def __init__(self, *, is_open: bool) -> None:
        self._is_open = is_open

    async def pass_through(self) -> bool:
        return self._is_open


@pytest.mark.parametrize("is_open", [True, False])
async def test_a_closed_read_gate_closes_the_connection_on_reads_only(is_open: bool) -> None:
    inner = encode_response_header(19, 5, 9) + encode_response(19, 5, CreateTopicsResponse())
    broker = Broker(
        EnvelopeReply(0, inner, 1), DescribeClusterResponse(), read_gate=Gate(is_open=is_open)
    )
    reply = await broker.dispatcher.handle(_request(60, 0, DESCRIBE_CLUSTER))
    assert (reply is not None, broker.last().closed) == (is_open, not is_open)
    assert await broker.dispatcher.handle(_create()) == inner


@pytest.mark.parametrize("key", LOCAL)
async def test_every_api_that_reads_metadata_passes_the_read_gate(key: int) -> None:
    """All but the APIs of a login, which read no metadata."""
    broker = Broker(read_gate=Gate(is_open=False))
    broker.dispatcher._local_apis = {key: DescribesCluster(b"encoded before")}
    spec = API_SPECS[key]
    body = encode_request(key, spec.max_version, spec.request())
    reply = await broker.dispatcher.handle(_request(key, spec.max_version, body))
    assert (reply is None) is (spec.name not in WITHOUT_METADATA), spec.name


async def test_requests_to_the_controller_in_this_process_do_not_count_as_redirected() -> None:
    inner = encode_response_header(19, 5, 9) + encode_response(19, 5, CreateTopicsResponse())
    broker = Broker(EnvelopeReply(0, inner, 1), is_controller=True)
    for _ in range(12):
        assert await broker.dispatcher.handle(_create()) == inner
    for name in ("num_messages_redirected_count", "bridgehead_client_requests_forwarded_total"):
        assert broker.counts()[name] == 0
    elsewhere = Broker(EnvelopeReply(0, inner, 1))
    for _ in range(12):
        await elsewhere.dispatcher.handle(_create())
    for name in ("num_messages_redirected_count", "bridgehead_client_requests_forwarded_total"):
        assert elsewhere.counts()[name] == 12


async def test_a_broker_without_forwarding_returns_not_controller() -> None:
    broker = Broker(forwarding_enabled=False)
    reply = await broker.dispatcher.handle(_create())
    assert reply is not None
    assert _codes(reply) == [("orders", 41, "")]
    assert broker.link.sent == []
    assert broker.counts()["not_controller_responses_count"] == 1
    assert broker.last().route == "NOT_CONTROLLER"


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (DescribeClusterResponse(cluster_id="x"), 0),
        (ApiError(ErrorCode.INVALID_REQUEST, "own words"), 42),
        (ApiError(ErrorCode.REQUEST_TIMED_OUT), 7),
        (ApiError(ErrorCode.INVALID_REQUEST, "longer than a string may be " * 2000), -1),
        (RuntimeError("a fault"), -1),
        ("not a message", -1),
    ],
)
async def test_any_exception_of_a_local_api_becomes_a_response(end: Any, code: int) -> None:
    broker = Broker(local=end)
    body = DESCRIBE_CLUSTER
    reply = await broker.dispatcher.handle(_request(60, 0, body))
    assert reply is not None
    _, at = decode_response_header(60, 0, reply)
    assert decode_response(60, 0, reply, at).error_code == code
    assert broker.last().zxid == 42


async def test_an_encoded_response_is_sent_as_it_is() -> None:
    broker = Broker(local=b"encoded before")
    reply = await broker.dispatcher.handle(_request(60, 0, DESCRIBE_CLUSTER))
    assert reply == encode_response_header(60, 0, 9) + b"encoded before"


def _alter(*names: str) -> ClientRequest:
    resources = [AlterConfigsResource(resource_type=2, resource_name=name) for name in names]
    return _request(33, 1, encode_request(33, 1, AlterConfigsRequest(resources=resources)))


async def _altered(broker: Broker, *names: str) -> list[tuple[str, int]]:
    reply = await broker.dispatcher.handle(_alter(*names))
    assert reply is not None
    _, at = decode_response_header(33, 1, reply)
    return [(r.resource_name, r.error_code) for r in decode_response(33, 1, reply, at).responses]


async def test_a_split_request_forwards_the_rest_and_merges_both_responses() -> None:
    there = AlterConfigsResponse(
        responses=[AlterConfigsResourceResponse(resource_type=2, resource_name="b")]
    )
    inner = encode_response_header(33, 1, 9) + encode_response(33, 1, there)
    broker = Broker(EnvelopeReply(0, inner, 88))
    assert await _altered(broker, "a", "b") == [("a", 42), ("b", 0)]
    (sent,) = broker.link.sent
    assert sent.request_header == _alter("a", "b").header_bytes
    assert sent.request_data == _alter("b").body
    assert broker.last().zxid == 88


async def test_a_drafted_listener_forwards_the_whole_request() -> None:
    """KIP-590: the request is forwarded and the inner response relayed, both unchanged."""
    inner = encode_response_header(33, 1, 9) + b"not read"
    broker = Broker(EnvelopeReply(0, inner, 88))
    sent = _alter("a", "b")
    drafted = replace(sent, client=replace(sent.client, dialect="drafted"))
    assert await broker.dispatcher.handle(drafted) == inner
    assert [envelope.request_data for envelope in broker.link.sent] == [sent.body]


@pytest.mark.parametrize("key", [33, 44])
async def test_a_drafted_listener_splits_off_only_changes_of_loggers(key: int) -> None:
    """The API's own split keeps two resources together, one of which a release would keep here."""
    checks: Any = None  # They would fail if a resource of a topic or a broker were checked here.
    split = AlterConfigsSplit(checks) if key == 33 else IncrementalAlterConfigsSplit(checks)
    broker = Broker(EnvelopeReply(0, encode_response_header(key, 1, 9) + b"not read", 88))
    broker.dispatcher._writes._split_apis = {key: split}
    spec = API_SPECS[key]
    resource: Any = AlterConfigsResource if key == 33 else IncrementalResource
    resources = [resource(2, "orders"), resource(4, "1")]
    body = encode_request(key, 1, spec.request(resources=resources))
    request = a_request(key, 1, body, request_id="1.b.1.1.9", dialect="drafted")
    reply = await broker.dispatcher.handle(request)
    assert reply == encode_response_header(key, 1, 9) + b"not read"
    assert [envelope.request_data for envelope in broker.link.sent] == [body]


async def test_a_broker_that_writes_itself_splits_requests_of_a_drafted_listener_too() -> None:
    """It is below the bridge release, so nothing is forwarded."""
    written: list[list[str]] = []

    async def write(request: ClientRequest, rest: Any) -> tuple[Any, int]:
        written.append([resource.resource_name for resource in rest.resources])
        rows = [AlterConfigsResourceResponse(0, None, 2, r.resource_name) for r in rest.resources]
        return AlterConfigsResponse(responses=rows), 77

    relay: Any = None
    writes = Writes(relay, {33: KeepsFirst()}, image_zxid=lambda: 42, write_directly=write)
    sent = _alter("a", "b")
    drafted = replace(sent, client=replace(sent.client, dialect="drafted"))
    message = decode_request(33, 1, sent.body)
    done = await writes.execute(drafted, message, Route.DIRECT)
    assert written == [["b"]]
    assert done.zxid == 77
    assert done.body is not None
    merged = decode_response(33, 1, done.body).responses
    assert [(row.resource_name, row.error_code) for row in merged] == [("a", 42), ("b", 0)]


async def test_a_split_request_with_only_local_resources_is_not_forwarded() -> None:
    broker = Broker()
    assert await _altered(broker, "a") == [("a", 42)]
    assert broker.link.sent == []
    assert broker.counts()["num_messages_redirected_count"] == 0


async def test_an_error_of_the_forwarded_part_keeps_the_local_results() -> None:
    assert await _altered(Broker(EnvelopeReply(31, None, 0)), "a", "b") == [("a", 42), ("b", -1)]


async def test_an_exception_in_a_split_is_an_unknown_server_error_for_each_resource() -> None:
    assert await _altered(Broker(), "faulty", "b") == [("faulty", -1), ("b", -1)]


async def test_api_versions_in_an_unknown_version_gets_its_response_in_version_0() -> None:
    """A real Kafka answers even version -1 in this way."""
    broker = Broker()
    reply = broker.dispatcher.handle_unsupported(_request(18, 99, b""))
    assert reply is not None
    assert reply.hex() == "00000009" + "002300000001001200000004"
    assert broker.last().error == 35
    assert broker.dispatcher.handle_unsupported(_request(19, 99, b"")) is None
    assert broker.last().closed


async def test_all_unsupported_versions_have_one_label_in_the_metrics() -> None:
    """Otherwise a client could create any number of labels, even before it logs in."""
    broker = Broker()
    for version in range(90, 99):
        broker.dispatcher.handle_unsupported(_request(18, version, b""))
    counted = {key: n for key, n in broker.counts().items() if key.startswith(REQUESTS.name)}
    assert counted == {f'{REQUESTS.name}{{request="ApiVersions",version="-1"}}': 9}


async def test_every_request_has_one_responded_event() -> None:
    broker = Broker(EnvelopeReply(35, None, 0), local=DescribeClusterResponse())
    await broker.dispatcher.handle(_create())
    await broker.dispatcher.handle(_request(60, 0, DESCRIBE_CLUSTER))
    await broker.dispatcher.handle(_request(10, 0, b""))
    kinds = [e.kind for e in broker.log.events]
    assert kinds.count("request_received") == kinds.count("responded") == 3


class Charged:
    """A quota that is never exceeded; `percent` lists what was charged."""

    is_enabled = True

    def __init__(self) -> None:
        self.percent: list[float] = []

    def charge(self, _client: Client, percent: float) -> int:
        self.percent.append(percent)
        return 0


async def test_the_time_of_the_thread_is_charged_to_the_client() -> None:
    """Large messages are encoded in a thread, outside the event loop's time."""
    brokers = [DescribeClusterBroker(broker_id=number, host="h") for number in range(50_000)]
    quota = Charged()
    for count in (50_000, 3):
        response = DescribeClusterResponse(brokers=brokers[:count])
        broker = Broker(local=response, request_time=quota)
        assert await broker.dispatcher.handle(_request(60, 0, DESCRIBE_CLUSTER)) is not None
    large, small = quota.percent
    assert large > 1.0  # percent of a second, so 10 ms
    assert large > 10 * small
