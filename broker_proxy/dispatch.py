"""One request from its header to its answer: route it, have it done, tell the evidence.

Everything that decides is elsewhere: the route in `routing`, what an Envelope's answer means in
`attempt`, the answers in `apis`. None as an answer means: close the connection, as Kafka does.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bridgehead.kafka_wire.codec import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    throttle_time_ms,
)
from bridgehead.kafka_wire.dialects import DRAFTED_SPECS
from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import decode_response_header, encode_response_header
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.kafka_wire.request_checks import check_request
from broker_proxy.apis.base import (
    ClientRequest,
    ClosedUnansweredError,
    LocalApi,
    NeverAnsweredError,
    SplitApi,
)
from broker_proxy.attempt import Step
from broker_proxy.forwarding import Forwarded, ForwardingManager
from broker_proxy.routing import DIALECTS, Route, route
from broker_proxy.settling import ReadGate
from event_log.digests import body_sha256
from event_log.events import Answered, RequestReceived
from event_log.writer import EventLog
from metrics.node_metrics import NodeMetrics

_log = logging.getLogger(__name__)
_API_VERSIONS = 18
# What these answer does not depend on metadata: SaslHandshake, ApiVersions, SaslAuthenticate.
_NO_METADATA = frozenset({17, 18, 36})


@dataclass(frozen=True, slots=True)
class _Done:
    """An answer's body, and what the evidence says of it."""

    body: bytes | None  # None: close the connection
    zxid: int
    error: int | None = None  # of the request as a whole, where it failed as a whole


_CLOSE = _Done(None, 0)
# What a broker below the bridge release is given: a request with what is left of its message. It
# returns the response message and the zxid that this stands for, or raises as a LocalApi does.
WriteDirectly = Callable[[ClientRequest, Any], Awaitable[tuple[Any, int]]]


class Dispatcher:
    """Answers requests of all connections of one broker."""

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
        self._now_ns = now_ns
        self._log = log
        self._metrics = metrics

    async def answer(self, request: ClientRequest) -> bytes | None:
        """Return header and body of the answer, or None: close the connection."""
        header, course = request.header, request.course
        course.executed_ns = self._now_ns()
        way = route(
            header.api_key,
            header.api_version,
            dialect=request.connection.dialect,
            forwarding_enabled=self._forwarding_enabled,
            broker_is_controller=self._is_controller(),
            writes_itself=self._write_directly is not None,
        )
        self._received(request, way)
        done = _CLOSE
        if way is not None:
            try:
                message = decode_request(
                    header.api_key,
                    header.api_version,
                    request.body,
                    dialect=request.connection.dialect,
                )
                check_request(header.api_key, header.api_version, message)
            except WireError as wrong:
                _log.info("%s is malformed: %s", request.request_id, wrong)
            else:
                course.message = message
                done = await self._execute(request, message, way)
        self._answered(request, way, done)
        if done.body is None:
            return None
        head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
        return head + done.body

    def may_take_long(self, request: ClientRequest) -> bool:
        """True when the answers before this one should not wait for it."""
        way = DIALECTS[request.connection.dialect].get(request.header.api_key)
        return way is Route.FORWARD or self._read_gate is not None

    def answer_unsupported(self, request: ClientRequest) -> bytes | None:
        """Answer ApiVersions in version 0 with what there is; close on any other API."""
        header = request.header
        request.course.executed_ns = self._now_ns()
        way = Route.LOCAL if header.api_key == _API_VERSIONS else None
        self._received(request, way)
        done = _CLOSE
        if way is not None:
            error = ErrorCode.UNSUPPORTED_VERSION
            response = error_response(_API_VERSIONS, None, 0, error)
            request.course.response = response
            done = _Done(encode_response(_API_VERSIONS, 0, response), 0, int(error))
        self._answered(request, way, done)
        if done.body is None:
            return None
        return encode_response_header(_API_VERSIONS, 0, header.correlation_id) + done.body

    def _received(self, request: ClientRequest, way: Route | None) -> None:
        header, connection = request.header, request.connection
        is_written = way in (Route.FORWARD, Route.DIRECT)
        self._log.append(
            RequestReceived(
                request_id=request.request_id,
                connection=connection.connection_id,
                api_key=header.api_key,
                api_version=header.api_version,
                correlation_id=header.correlation_id,
                client_id=header.client_id,
                principal=str(connection.principal),
                token_authenticated=connection.principal.token_authenticated,
                client_host=connection.client_host,
                listener=connection.listener_name,
                security_protocol=connection.security_protocol,
                dialect=connection.dialect,
                route=way.name if way else "CLOSE",
                body_sha256=body_sha256(header.api_key, request.body) if is_written else None,
                client_software_name=connection.software_name,
                client_software_version=connection.software_version,
            )
        )

    def _answered(self, request: ClientRequest, way: Route | None, done: _Done) -> None:
        header = request.header
        self._log.append(
            Answered(
                request_id=request.request_id,
                api_key=header.api_key,
                api_version=header.api_version,
                route=way.name if way else "CLOSE",
                error=done.error,
                closed=done.body is None,
                zxid=done.zxid,
            )
        )
        answered_ns = request.course.answered_ns = self._now_ns()
        self._metrics.request_completed(
            DRAFTED_SPECS[header.api_key].name,
            header.api_version,
            (answered_ns - request.received_ns) / 1e6,
        )

    async def _execute(self, request: ClientRequest, message: Any, way: Route) -> _Done:
        """Have it done; whatever is raised becomes an answer in the API's own shape."""
        try:
            if way is Route.LOCAL:
                if not await self._is_fresh(request):
                    return _CLOSE
                return await self._answer_here(request, message)
            if way in (Route.FORWARD, Route.DIRECT):
                split = self._split_apis.get(request.header.api_key)
                if split is not None:
                    return await self._split(request, message, split, way)
                return await self._write(request, message, request.body, way)
            self._metrics.not_controller_answered()
            return self._refuse(request, message, ErrorCode.NOT_CONTROLLER, None)
        except NeverAnsweredError:
            request.course.is_left = True
            return _CLOSE
        except ClosedUnansweredError as closed:
            _log.info("%s: %s", request.request_id, closed)
            return _CLOSE
        except ApiError as refused:
            return self._refuse(request, message, refused.error, refused.message)
        except Exception:
            _log.exception("a fault while answering %s", request.request_id)
            return self._refuse(request, message, ErrorCode.UNKNOWN_SERVER_ERROR, None)

    async def _is_fresh(self, request: ClientRequest) -> bool:
        """Wait until a read may be answered; False: better no answer than a stale one."""
        if self._read_gate is None or request.header.api_key in _NO_METADATA:
            return True
        return await self._read_gate.pass_through()

    async def _answer_here(self, request: ClientRequest, message: Any) -> _Done:
        header = request.header
        response = await self._local_apis[header.api_key].answer(request, message)
        request.course.response = response
        if not isinstance(response, bytes):  # Else encoded before, and kept.
            response = encode_response(
                header.api_key, header.api_version, response, request.connection.dialect
            )
        return _Done(response, self._image_zxid())

    def _refuse(
        self, request: ClientRequest, message: Any, error: ErrorCode, text: str | None
    ) -> _Done:
        key, version = request.header.api_key, request.header.api_version
        response = error_response(key, message, version, error, text)
        request.course.response = response
        body = encode_response(key, version, response, request.connection.dialect)
        return _Done(body, self._image_zxid(), int(error))

    async def _write(self, request: ClientRequest, message: Any, body: bytes, way: Route) -> _Done:
        """Have it written, by the controller or by this broker; `body` is the message as bytes."""
        if way is Route.FORWARD:
            return await self._forward(request, message, body)
        assert self._write_directly is not None
        response, zxid = await self._write_directly(request, message)
        request.course.response = response
        key, version = request.header.api_key, request.header.api_version
        return _Done(encode_response(key, version, response, request.connection.dialect), zxid)

    async def _forward(self, request: ClientRequest, message: Any, body: bytes) -> _Done:
        connection_id = request.connection.connection_id
        redirecting = not self._is_controller()
        request.course.handed_on_ns = self._now_ns()
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
        return self._judge(request, message, forwarded)

    def _judge(self, request: ClientRequest, message: Any, forwarded: Forwarded) -> _Done:
        key, version = request.header.api_key, request.header.api_version
        if forwarded.step is Step.RELAY and forwarded.answer is not None:
            try:
                _, at = decode_response_header(key, version, forwarded.answer)
                body = forwarded.answer[at:]
                course = request.course
                course.response, course.own_throttle_ms = body, forwarded.throttle_ms
                said_ms = throttle_time_ms(key, version, body)
                course.throttle_ms = max(forwarded.throttle_ms, said_ms)
                return _Done(body, forwarded.zxid)
            except WireError as wrong:
                _log.warning("%s: the inner answer is malformed: %s", request.request_id, wrong)
        self._metrics.forwarding_failed()
        if forwarded.step is Step.CLOSE:
            request.course.response = None
            return _Done(None, 0, int(ErrorCode.UNSUPPORTED_VERSION))
        timed_out = forwarded.step is Step.TIMED_OUT
        error = ErrorCode.REQUEST_TIMED_OUT if timed_out else ErrorCode.UNKNOWN_SERVER_ERROR
        return self._refuse(request, message, error, None)

    async def _split(
        self, request: ClientRequest, message: Any, split: SplitApi, way: Route
    ) -> _Done:
        """Answer this broker's part, hand on the rest, and merge in the order of the request."""
        key, version = request.header.api_key, request.header.api_version
        dialect = request.connection.dialect
        local, rest = await split.split(request, message)
        if rest is None:
            response = request.course.response = split.merge(request, message, local, None)
            return _Done(encode_response(key, version, response, dialect), self._image_zxid())
        untouched = rest is message
        body = request.body if untouched else encode_request(key, version, rest, dialect)
        done = await self._write(request, rest, body, way)
        if untouched or done.body is None:
            return done
        answer = decode_response(key, version, done.body, dialect=dialect)
        response = request.course.response = split.merge(request, message, local, answer)
        return _Done(encode_response(key, version, response, dialect), done.zxid, done.error)
