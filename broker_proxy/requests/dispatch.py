"""Handles one request from its decoded header to its response, and logs the evidence.

`routing` decides where a request goes. `forwarding_retry` decides what to do after each reply to an
Envelope. `broker_proxy.apis` answers requests that are not forwarded. The body is decoded here. As
in Kafka, a malformed body closes the connection. A body is forwarded as the client sent it, unless
this broker answers a part of the request (`_split`). A response of None closes the connection,
except after Produce with acks=0. If Kafka would never respond (NeverAnsweredError), the connection
is closed only after the idle timeout.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import DRAFTED_SPECS, Route, error_response
from bridgehead.kafka_wire.codec import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    throttle_time_ms,
    with_throttle_time,
)
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import decode_response_header, encode_response_header
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.kafka_wire.request_checks import check_request
from broker_proxy.apis.base import (
    ClientRequest,
    ClosedUnansweredError,
    LocalApi,
    NeverAnsweredError,
    NoResponseError,
    SplitApi,
)
from broker_proxy.forwarding.manager import Forwarded, ForwardingManager
from broker_proxy.forwarding.retry import Step
from broker_proxy.metadata.applied_metadata import ReadGate
from broker_proxy.requests.client_quotas import ClientQuota
from broker_proxy.requests.routing import DIALECTS, RoutingTable, route
from broker_proxy.requests.thread_time import Timed
from event_log.digests import body_sha256
from event_log.events import Answered, RequestReceived
from event_log.writer import EventLog
from metrics.names import FOLLOWER_FETCH
from metrics.node_metrics import NodeMetrics

_log = logging.getLogger(__name__)
# The responses of these APIs do not depend on metadata.
_NO_METADATA = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE})


# Requests between brokers. As in Kafka, no quota applies to them.
_BETWEEN_BROKERS = frozenset(
    {
        ApiKey.ENVELOPE,
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
    }
)
_LOGINS = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
_PERCENT_PER_NS = 100 / 1e9
# The metrics' label for all unsupported versions. Clients choose the version: with a label for each
# version, a client that is not logged in could add 65,000 labels.
_UNSUPPORTED = -1


def _is_exempt(request: ClientRequest, message: Any) -> bool:
    key = request.header.api_key
    return _is_replication(request, message) or key in _BETWEEN_BROKERS or key in _LOGINS


def _is_replication(request: ClientRequest, message: Any) -> bool:
    if request.header.api_key != ApiKey.FETCH or message is None:
        return False
    replica: int = max(message.replica_id, message.replica_state.replica_id)
    return replica >= 0


def _decoded(request: ClientRequest) -> Any:
    """Return the message, or None if the bytes are not one."""
    header, dialect = request.header, request.client.dialect
    try:
        message = decode_request(header.api_key, header.api_version, request.body, dialect=dialect)
        check_request(header.api_key, header.api_version, message)
    except WireError as error:
        _log.info("%s is malformed: %s", request.request_id, error)
        return None
    return message


@dataclass(frozen=True, slots=True)
class _Done:
    """A response body and what the evidence records about it."""

    body: bytes | None  # None: close the connection
    zxid: int
    error: int | None = None  # set when the whole request failed


_CLOSE = _Done(None, 0)
# Executes a write on a broker below KIP-590's bridge release, without the controller. Takes the
# request and the part of its message that this broker has not answered yet. Returns the response
# message and the zxid of the write. Raises the same errors as a LocalApi.
WriteDirectly = Callable[[ClientRequest, Any], Awaitable[tuple[Any, int]]]


class Dispatcher:
    """Handles the requests of all connections of one broker."""

    def __init__(
        self,
        *,
        local_apis: Mapping[int, LocalApi],
        split_apis: Mapping[int, SplitApi],
        forwarding: ForwardingManager,
        forwarding_enabled: bool,
        is_controller: Callable[[], bool],
        image_zxid: Callable[[], int],
        read_gate: ReadGate | None = None,
        write_directly: WriteDirectly | None = None,
        request_time: ClientQuota | None = None,
        may_overlap: Callable[[], bool] = lambda: False,
        routes: RoutingTable = DIALECTS,
        now_ns: Callable[[], int],
        log: EventLog,
        metrics: NodeMetrics,
    ) -> None:
        self._local_apis = local_apis
        self._split_apis = split_apis
        self._forwarding = forwarding
        self._forwarding_enabled = forwarding_enabled
        self._is_controller = is_controller
        self._image_zxid = image_zxid
        self._read_gate = read_gate
        self._write_directly = write_directly
        self._request_time = request_time
        self._may_overlap = may_overlap
        self._routes = routes
        self._now_ns = now_ns
        self._log = log
        self._metrics = metrics

    async def handle(
        self, request: ClientRequest, earlier: asyncio.Future[Any] | None = None
    ) -> bytes | None:
        """Return the response with its header. For None, see the module docstring.

        The response is recorded in the evidence only after `earlier`, an earlier write, is done.
        """
        header, progress = request.header, request.progress
        progress.executed_ns = self._now_ns()
        way = self._way(request)
        message = None if way is None else self.decode(request)
        # Followers' Fetch requests are not recorded: even without load they would add 1 GB a day.
        is_recorded = not _is_replication(request, message)
        if is_recorded:
            self._received(request, way)
        done = _CLOSE
        if way is not None and message is not None:
            done = await self._measure(request, message, way)
        if earlier is not None and not earlier.done():
            await asyncio.wait((earlier,))
        self._answered(request, way, done, is_recorded=is_recorded)
        if done.body is None:
            return None
        head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
        return head + done.body

    def _way(self, request: ClientRequest) -> Route | None:
        header = request.header
        return route(
            header.api_key,
            header.api_version,
            dialect=request.client.dialect,
            forwarding_enabled=self._forwarding_enabled,
            broker_is_controller=self._is_controller(),
            writes_itself=self._write_directly is not None,
            routes=self._routes,
        )

    def decode(self, request: ClientRequest) -> Any:
        """Return the message, or None if the bytes are not one."""
        progress = request.progress
        if progress.message is None:
            progress.message = _decoded(request)
        return progress.message

    def may_overlap(self, request: ClientRequest) -> bool:
        """True if this write may be executed at the same time as others of its connection."""
        return self._may_overlap() and self._way(request) is Route.FORWARD

    def may_take_long(self, request: ClientRequest) -> bool:
        """True when earlier responses should be written before this request is executed."""
        way = self._routes[request.client.dialect].get(request.header.api_key)
        waits = DRAFTED_SPECS[request.header.api_key].needs_data_plane
        return way is Route.FORWARD or waits or self._read_gate is not None

    def handle_unsupported(self, request: ClientRequest) -> bytes | None:
        """Answer an unsupported version of ApiVersions in version 0; None for any other API."""
        header = request.header
        request.progress.executed_ns = self._now_ns()
        way = Route.LOCAL if header.api_key == ApiKey.API_VERSIONS else None
        self._received(request, way)
        done = _CLOSE
        if way is not None:
            error = ErrorCode.UNSUPPORTED_VERSION
            response = error_response(ApiKey.API_VERSIONS, None, 0, error)
            request.progress.response = response
            done = _Done(encode_response(ApiKey.API_VERSIONS, 0, response), 0, int(error))
        self._answered(request, way, done, version_label=_UNSUPPORTED)
        if done.body is None:
            return None
        return encode_response_header(ApiKey.API_VERSIONS, 0, header.correlation_id) + done.body

    def _received(self, request: ClientRequest, way: Route | None) -> None:
        header, client = request.header, request.client
        is_written = way in (Route.FORWARD, Route.DIRECT)
        self._log.append(
            RequestReceived(
                request_id=request.request_id,
                connection=request.connection.connection_id,
                api_key=header.api_key,
                api_version=header.api_version,
                correlation_id=header.correlation_id,
                client_id=header.client_id,
                principal=str(client.principal),
                token_authenticated=client.principal.token_authenticated,
                client_host=client.host,
                listener=client.listener_name,
                security_protocol=client.security_protocol,
                dialect=client.dialect,
                route=way.name if way else "CLOSE",
                body_sha256=body_sha256(header.api_key, request.body) if is_written else None,
                client_software_name=client.software_name,
                client_software_version=client.software_version,
            )
        )

    def _answered(
        self,
        request: ClientRequest,
        way: Route | None,
        done: _Done,
        *,
        is_recorded: bool = True,
        version_label: int | None = None,
    ) -> None:
        header = request.header
        if is_recorded:
            self._log.append(
                Answered(
                    request_id=request.request_id,
                    api_key=header.api_key,
                    api_version=header.api_version,
                    route=way.name if way else "CLOSE",
                    error=done.error,
                    closed=done.body is None and not request.progress.needs_no_response,
                    zxid=done.zxid,
                )
            )
        answered_ns = request.progress.answered_ns = self._now_ns()
        self._metrics.request_completed(
            DRAFTED_SPECS[header.api_key].name if is_recorded else FOLLOWER_FETCH,
            header.api_version if version_label is None else version_label,
            (answered_ns - request.received_ns) / 1e6,
        )

    async def _measure(self, request: ClientRequest, message: Any, way: Route) -> _Done:
        """Execute the request and charge its time to the client's quota (KIP-124)."""
        quota = self._request_time
        if quota is None or not quota.is_enabled or _is_exempt(request, message):
            return await self._execute(request, message, way)
        timed = Timed(self._execute(request, message, way), self._now_ns)
        done = await timed
        if done.body is None:
            return done
        throttle_ms = quota.charge(request.client, timed.busy_ns * _PERCENT_PER_NS)
        if throttle_ms <= request.progress.throttle_ms:
            return done
        request.progress.throttle_ms = throttle_ms
        header = request.header
        body = with_throttle_time(
            header.api_key, header.api_version, done.body, throttle_ms, request.client.dialect
        )
        return replace(done, body=body)

    async def _execute(self, request: ClientRequest, message: Any, way: Route) -> _Done:
        """Execute the request. ApiErrors and unexpected exceptions become error responses."""
        try:
            if way is Route.LOCAL:
                if not await self._is_fresh(request):
                    return _CLOSE
                return await self._handle_here(request, message)
            if way in (Route.FORWARD, Route.DIRECT):
                split = self._split_apis.get(request.header.api_key)
                if split is not None:
                    return await self._split(request, message, split, way)
                return await self._write(request, message, request.body, way)
            self._metrics.not_controller_answered()
            return self._error(request, message, ErrorCode.NOT_CONTROLLER, None)
        except NeverAnsweredError:
            request.progress.is_never_answered = True
            return _CLOSE
        except NoResponseError:
            request.progress.needs_no_response = True
            return _CLOSE
        except ClosedUnansweredError as closed:
            _log.info("%s: %s", request.request_id, closed)
            return _CLOSE
        except ApiError as rejection:
            return self._error(request, message, rejection.error, rejection.message)
        except Exception:
            _log.exception("%s failed unexpectedly", request.request_id)
            return self._error(request, message, ErrorCode.UNKNOWN_SERVER_ERROR, None)

    async def _is_fresh(self, request: ClientRequest) -> bool:
        """Wait until a read may be answered; return False if its response could be stale."""
        if self._read_gate is None or request.header.api_key in _NO_METADATA:
            return True
        return await self._read_gate.pass_through()

    async def _handle_here(self, request: ClientRequest, message: Any) -> _Done:
        header = request.header
        response = await self._local_apis[header.api_key].handle(request, message)
        request.progress.response = response
        if not isinstance(response, bytes):  # already encoded when it is bytes
            response = encode_response(
                header.api_key, header.api_version, response, request.client.dialect
            )
        return _Done(response, self._image_zxid())

    def _error(
        self, request: ClientRequest, message: Any, error: ErrorCode, text: str | None
    ) -> _Done:
        key, version = request.header.api_key, request.header.api_version
        response = error_response(key, message, version, error, text)
        request.progress.response = response
        if response is None:
            return _CLOSE
        try:
            body = encode_response(key, version, response, request.client.dialect)
        except WireError:
            if text is None:
                raise
            # The text contains a name from the request, and is longer than a string may be.
            return self._error(request, message, ErrorCode.UNKNOWN_SERVER_ERROR, None)
        return _Done(body, self._image_zxid(), int(error))

    async def _write(self, request: ClientRequest, message: Any, body: bytes, way: Route) -> _Done:
        """Forward a write, or execute it on this broker; `body` encodes `message`."""
        if way is Route.FORWARD:
            return await self._forward(request, message, body)
        assert self._write_directly is not None
        response, zxid = await self._write_directly(request, message)
        request.progress.response = response
        key, version = request.header.api_key, request.header.api_version
        return _Done(encode_response(key, version, response, request.client.dialect), zxid)

    async def _forward(self, request: ClientRequest, message: Any, body: bytes) -> _Done:
        connection_id = request.connection.connection_id
        redirecting = not self._is_controller()
        request.progress.forwarded_ns = self._now_ns()
        if redirecting:
            self._metrics.forwarding_began(connection_id)
        try:
            forwarded = await self._forwarding.forward(request, body)
        finally:
            if redirecting:
                self._metrics.forwarding_ended(connection_id)
        if forwarded.queued_ms is not None:
            self._metrics.queue_time(forwarded.queued_ms)
        if forwarded.remote_ms is not None:
            self._metrics.remote_time(forwarded.remote_ms)
        return self._relay(request, message, forwarded)

    def _relay(self, request: ClientRequest, message: Any, forwarded: Forwarded) -> _Done:
        key, version = request.header.api_key, request.header.api_version
        if forwarded.step is Step.RELAY and forwarded.response is not None:
            try:
                _, at = decode_response_header(key, version, forwarded.response)
                body = forwarded.response[at:]
                progress = request.progress
                progress.response, progress.controller_throttle_ms = body, forwarded.throttle_ms
                body_ms = throttle_time_ms(key, version, body)
                progress.throttle_ms = max(forwarded.throttle_ms, body_ms)
                return _Done(body, forwarded.zxid)
            except WireError as wrong:
                _log.warning("%s: malformed inner response: %s", request.request_id, wrong)
        self._metrics.forwarding_failed()
        if forwarded.step is Step.CLOSE:
            request.progress.response = None
            return _Done(None, 0, int(ErrorCode.UNSUPPORTED_VERSION))
        timed_out = forwarded.step is Step.TIMED_OUT
        error = ErrorCode.REQUEST_TIMED_OUT if timed_out else ErrorCode.UNKNOWN_SERVER_ERROR
        return self._error(request, message, error, None)

    async def _split(
        self, request: ClientRequest, message: Any, split: SplitApi, way: Route
    ) -> _Done:
        """Answer this broker's resources and forward the others; merge results in request order.

        In the drafted dialect (KIP-590) this broker's resources are only those of its own loggers.
        A broker below the bridge release does not forward the other resources: it alters them in
        ZooKeeper itself.
        """
        key, version = request.header.api_key, request.header.api_version
        dialect = request.client.dialect
        is_wrapped = dialect == "drafted" and way is Route.FORWARD
        local, rest = await split.split(request, message, is_wrapped=is_wrapped)
        if rest is None:
            response = request.progress.response = split.merge(request, message, local, None)
            return _Done(encode_response(key, version, response, dialect), self._image_zxid())
        untouched = rest is message
        body = request.body if untouched else encode_request(key, version, rest, dialect)
        done = await self._write(request, rest, body, way)
        if untouched or done.body is None:
            return done
        answer = decode_response(key, version, done.body, dialect=dialect)
        response = request.progress.response = split.merge(request, message, local, answer)
        return _Done(encode_response(key, version, response, dialect), done.zxid, done.error)
