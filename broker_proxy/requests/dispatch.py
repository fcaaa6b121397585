"""Handles one request from its decoded header to its response, and logs the evidence.

`routing` decides where a request goes. `split` and `relay` execute and forward writes;
`broker_proxy.apis` answers the other requests. The body is decoded here. As in Kafka, a malformed
body closes the connection. A response of None closes the connection, except after Produce with
acks=0. If Kafka would never respond (NeverRespondedError), the connection is closed only after the
idle timeout.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import DRAFTED_SPECS, Route, error_response
from bridgehead.kafka_wire.codec import decode_request, encode_response, with_throttle_time
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import encode_response_header
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.kafka_wire.request_checks import check_request
from bridgehead.slices import ThreadTime, in_thread, is_large
from broker_proxy.apis.base import LocalApi
from broker_proxy.client_quotas import ClientQuota
from broker_proxy.client_request import (
    ClientRequest,
    ClosedWithoutResponseError,
    NeverRespondedError,
    NoResponseError,
)
from broker_proxy.metadata.applied_metadata import ReadGate
from broker_proxy.requests.responses import CLOSE, EncodedResponse, encoded, failure
from broker_proxy.requests.routing import ROUTING_TABLES, RoutingTable, choose_route
from broker_proxy.requests.split import Writes
from broker_proxy.requests.thread_time import Timed
from event_log.digests import body_sha256
from event_log.events import RequestReceived, Responded
from event_log.writer import EventLog
from metrics.names import FOLLOWER_FETCH
from metrics.node_metrics import NodeMetrics

_log = logging.getLogger(__name__)
_PERCENT_PER_NS = 100 / 1e9
# The metrics' label for all unsupported versions. Clients choose the version: with a label for each
# version, a client that is not logged in could add 65,000 labels.
_UNSUPPORTED = -1


def _is_exempt(request: ClientRequest, message: Any) -> bool:
    spec = DRAFTED_SPECS[request.header.api_key]
    return spec.between_brokers or spec.is_login or _is_replication(request, message)


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


class Dispatcher:
    """Handles the requests of all connections of one broker."""

    def __init__(
        self,
        *,
        local_apis: Mapping[int, LocalApi],
        writes: Writes,
        forwarding_enabled: bool,
        is_controller: Callable[[], bool],
        image_zxid: Callable[[], int],
        read_gate: ReadGate | None = None,
        request_time: ClientQuota | None = None,
        may_overlap: Callable[[], bool] = lambda: False,
        routes: RoutingTable = ROUTING_TABLES,
        now_ns: Callable[[], int],
        log: EventLog,
        metrics: NodeMetrics,
    ) -> None:
        self._local_apis = local_apis
        self._writes = writes
        self._forwarding_enabled = forwarding_enabled
        self._is_controller = is_controller
        self._image_zxid = image_zxid
        self._read_gate = read_gate
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
        route = self._route(request)
        with ThreadTime() as thread_time:
            message = None if route is None else await self._decode_any(request)
            # Followers' Fetch requests are not recorded: even idle they would add 1 GB a day.
            is_recorded = not _is_replication(request, message)
            if is_recorded:
                await self._received(request, route)
            done = CLOSE
            if route is not None and message is not None:
                done = await self._measure(request, message, route, thread_time)
        if earlier is not None and not earlier.done():
            await asyncio.wait((earlier,))
        self._responded(request, route, done, is_recorded=is_recorded)
        if done.body is None:
            return None
        head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
        return head + done.body

    def _route(self, request: ClientRequest) -> Route | None:
        header = request.header
        return choose_route(
            header.api_key,
            header.api_version,
            dialect=request.client.dialect,
            forwarding_enabled=self._forwarding_enabled,
            broker_is_controller=self._is_controller(),
            writes_itself=self._writes.are_direct,
            routes=self._routes,
        )

    async def _decode_any(self, request: ClientRequest) -> Any:
        progress = request.progress
        if progress.message is None:
            progress.message = await in_thread(is_large(request.body), _decoded, request)
        return progress.message

    def decode(self, request: ClientRequest) -> Any:
        """Return the message, or None if the bytes are not one, or if they are large."""
        progress = request.progress
        if progress.message is None and not is_large(request.body):
            progress.message = _decoded(request)
        return progress.message

    def may_overlap(self, request: ClientRequest) -> bool:
        """True if this write may be executed at the same time as others of its connection."""
        return self._may_overlap() and self._route(request) is Route.FORWARD

    def may_take_long(self, request: ClientRequest) -> bool:
        """True when earlier responses should be written before this request is executed."""
        route = self._routes[request.client.dialect].get(request.header.api_key)
        waits = DRAFTED_SPECS[request.header.api_key].needs_data_plane
        return route is Route.FORWARD or waits or self._read_gate is not None

    def handle_unsupported(self, request: ClientRequest) -> bytes | None:
        """Answer an unsupported version of ApiVersions in version 0; None for any other API."""
        header = request.header
        request.progress.executed_ns = self._now_ns()
        route = Route.LOCAL if header.api_key == ApiKey.API_VERSIONS else None
        self._append_received(request, route, None)
        done = CLOSE
        if route is not None:
            error = ErrorCode.UNSUPPORTED_VERSION
            response = error_response(ApiKey.API_VERSIONS, None, 0, error)
            request.progress.response = response
            done = EncodedResponse(encode_response(ApiKey.API_VERSIONS, 0, response), 0, int(error))
        self._responded(request, route, done, version_label=_UNSUPPORTED)
        if done.body is None:
            return None
        return encode_response_header(ApiKey.API_VERSIONS, 0, header.correlation_id) + done.body

    async def _received(self, request: ClientRequest, route: Route | None) -> None:
        digest = None
        if route in (Route.FORWARD, Route.DIRECT):
            body = request.body
            digest = await in_thread(is_large(body), body_sha256, request.header.api_key, body)
        self._append_received(request, route, digest)

    def _append_received(
        self, request: ClientRequest, route: Route | None, digest: str | None
    ) -> None:
        header, client = request.header, request.client
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
                route=route.name if route else "CLOSE",
                body_sha256=digest,
                client_software_name=client.software_name,
                client_software_version=client.software_version,
            )
        )

    def _responded(
        self,
        request: ClientRequest,
        route: Route | None,
        done: EncodedResponse,
        *,
        is_recorded: bool = True,
        version_label: int | None = None,
    ) -> None:
        header = request.header
        if is_recorded:
            self._log.append(
                Responded(
                    request_id=request.request_id,
                    api_key=header.api_key,
                    api_version=header.api_version,
                    route=route.name if route else "CLOSE",
                    error=done.error,
                    closed=done.body is None and not request.progress.needs_no_response,
                    zxid=done.zxid,
                )
            )
        responded_ns = request.progress.responded_ns = self._now_ns()
        self._metrics.request_completed(
            DRAFTED_SPECS[header.api_key].name if is_recorded else FOLLOWER_FETCH,
            header.api_version if version_label is None else version_label,
            (responded_ns - request.received_ns) / 1e6,
        )

    async def _measure(
        self, request: ClientRequest, message: Any, route: Route, thread_time: ThreadTime
    ) -> EncodedResponse:
        """Execute the request and charge its time to the client's quota (KIP-124)."""
        quota = self._request_time
        if quota is None or not quota.is_enabled or _is_exempt(request, message):
            return await self._execute(request, message, route)
        timed = Timed(self._execute(request, message, route), self._now_ns)
        done = await timed
        if done.body is None:
            return done
        busy_ns = timed.busy_ns + thread_time.ns
        throttle_ms = quota.charge(request.client, busy_ns * _PERCENT_PER_NS)
        if throttle_ms <= request.progress.throttle_ms:
            return done
        request.progress.throttle_ms = throttle_ms
        key, version, dialect = *request.header[:2], request.client.dialect
        large, body = is_large(done.body), done.body
        body = await in_thread(large, with_throttle_time, key, version, body, throttle_ms, dialect)
        return replace(done, body=body)

    async def _execute(self, request: ClientRequest, message: Any, route: Route) -> EncodedResponse:
        """Execute the request. ApiErrors and unexpected exceptions become error responses."""
        try:
            if route is Route.LOCAL:
                if not await self._is_fresh(request):
                    return CLOSE
                return await self._handle_here(request, message)
            if route in (Route.FORWARD, Route.DIRECT):
                return await self._writes.execute(request, message, route)
            self._metrics.not_controller_responded()
            return await self._error(request, message, ErrorCode.NOT_CONTROLLER, None)
        except NeverRespondedError:
            request.progress.never_gets_response = True
            return CLOSE
        except NoResponseError:
            request.progress.needs_no_response = True
            return CLOSE
        except ClosedWithoutResponseError as closed:
            _log.info("%s: %s", request.request_id, closed)
            return CLOSE
        except ApiError as rejection:
            return await self._error(request, message, rejection.error, rejection.message)
        except Exception:
            _log.exception("%s failed unexpectedly", request.request_id)
            return await self._error(request, message, ErrorCode.UNKNOWN_SERVER_ERROR, None)

    async def _is_fresh(self, request: ClientRequest) -> bool:
        """Wait until a read may be answered; return False if its response could be stale."""
        if self._read_gate is None or not DRAFTED_SPECS[request.header.api_key].reads_metadata:
            return True
        return await self._read_gate.pass_through()

    async def _handle_here(self, request: ClientRequest, message: Any) -> EncodedResponse:
        zxid = self._image_zxid()  # The metadata may change while a long response is built.
        response = await self._local_apis[request.header.api_key].handle(request, message)
        if not isinstance(response, bytes):
            return await encoded(request, response, zxid)
        request.progress.response = response  # already encoded
        return EncodedResponse(response, zxid)

    async def _error(
        self, request: ClientRequest, message: Any, error: ErrorCode, text: str | None
    ) -> EncodedResponse:
        return await failure(request, message, error, text, self._image_zxid())
