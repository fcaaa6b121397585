"""The events of one request's decisions and of its response."""

from __future__ import annotations

from collections.abc import Mapping

from bridgehead.kafka_wire.errors import ErrorCode
from controller.apis.base import Outcome
from controller.requests.pending_request import PendingRequest
from event_log.events import ExecutionStarted, RequestDecided


def execution_started(pending: PendingRequest, epoch: int, image_zxid: int) -> ExecutionStarted:
    """Return the event of a decision, with the client and the zxid of the decision's image."""
    client = pending.client
    return ExecutionStarted(
        request_id=pending.request_id,
        identity=pending.identity,
        epoch=epoch,
        image_zxid=image_zxid,
        api_key=pending.header.api_key,
        api_version=pending.header.api_version,
        client_id=client.client_id,
        principal=str(client.principal),
        token_authenticated=client.principal.token_authenticated,
        client_host=client.host,
        listener=client.listener_name,
        security_protocol=client.security_protocol,
        body_sha256=pending.body_sha256,
    )


def request_decided(
    pending: PendingRequest,
    elements: list[tuple[str, int]],
    *,
    epoch: int,
    zxid: int,
    response_sha256: str | None,
    error: ErrorCode = ErrorCode.NONE,
) -> RequestDecided:
    """Return the event of a response."""
    return RequestDecided(
        request_id=pending.request_id,
        identity=pending.identity,
        api_key=pending.header.api_key,
        principal=str(pending.client.principal),
        epoch=epoch,
        image_zxid=pending.image_zxid,
        zxid=zxid,
        elements=elements,
        unchanged=sorted(pending.without_effect),
        error=int(error),
        validate_only=bool(getattr(pending.request, "validate_only", False)),
        response_sha256=response_sha256,
    )


def error_codes(
    outcomes: Mapping[str, Outcome], unfinished: frozenset[str]
) -> list[tuple[str, int]]:
    """Return each element and its error code in the response."""
    late = int(ErrorCode.REQUEST_TIMED_OUT)
    return [(e, late if e in unfinished else int(o.error)) for e, o in outcomes.items()]
