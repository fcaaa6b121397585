"""A write request of the generated cluster, and its events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bench.generated_evidence.evidence_writer import Boot
from event_log.commits import CommitOutcome
from event_log.events import RequestDecided, RequestReceived

BODY: Final = "c0ffee" + "0" * 58
RESPONSE: Final = "beef" + "0" * 60


@dataclass(slots=True)
class Write:
    """One write request. `code` is the error code of its element."""

    broker: Boot
    request_id: str
    identity: tuple[int, str, int]
    api_key: int
    element: str
    principal: str
    code: int = 0
    op_id: str | None = None
    executed_for: str = ""  # the principal that the controller sees
    committed_code: int | None = 0  # None: no outcome and no effect
    response: int | None = None  # the broker's own error code instead of the controller's response
    executed_body: str = BODY  # the digest of the body that the controller executes
    relayed: str = RESPONSE  # the digest of the response that the broker gets


def received(
    write: Write, connection: str, route: str, sha: str | None, software: tuple[str, str]
) -> RequestReceived:
    """Return the event of a received request."""
    return RequestReceived(
        request_id=write.request_id,
        connection=connection,
        api_key=write.api_key,
        api_version=12 if route == "LOCAL" else 5,
        correlation_id=write.identity[2],
        client_id="client",
        principal=write.principal,
        token_authenticated=False,
        client_host="10.0.0.9",
        listener="SASL",
        security_protocol="SASL_PLAINTEXT",
        dialect="shipped",
        route=route,
        body_sha256=sha,
        client_software_name=software[0],
        client_software_version=software[1],
    )


def decided(write: Write, epoch: int, image_zxid: int, zxid: int, code: int) -> RequestDecided:
    """Return the event of the controller's decision."""
    return RequestDecided(
        request_id=write.request_id,
        identity=write.identity,
        api_key=write.api_key,
        principal=write.principal,
        epoch=epoch,
        image_zxid=image_zxid,
        zxid=zxid,
        elements=[(write.element, code)],
        unchanged=[],
        error=0,
        validate_only=False,
        response_sha256=RESPONSE,
    )


def outcome(write: Write, code: int = 0) -> CommitOutcome:
    """Return the committed outcome of a write."""
    broker_id, incarnation, sequence = write.identity
    return CommitOutcome(
        broker_id=broker_id,
        incarnation=incarnation,
        sequence=sequence,
        request_id=write.request_id,
        element=write.element,
        error=code,
    )
