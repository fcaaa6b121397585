"""The quirk denial-dumps-request: an unauthorized client gets a dump of Kafka's Request object.

The quirk wraps an API, so that neither Envelopes nor the loop know of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.image import MetadataImage
from cluster_model.quirks import DumpedRequest, denial_text, set_denial_message
from controller.apis.base import AdminApi, Decision, Outcome, RandomSource, RequestContext, Results
from controller.envelopes.open import OpenedEnvelope, OpenEnvelope, RejectedEnvelope
from controller.services import Sender
from envelope.messages import Envelope


def with_denial_dumps(open_envelope: OpenEnvelope, random: RandomSource) -> OpenEnvelope:
    """Return a function that opens Envelopes and wraps the API of each."""

    def open_and_wrap(envelope: Envelope, sender: Sender) -> OpenedEnvelope | RejectedEnvelope:
        opened = open_envelope(envelope, sender)
        if isinstance(opened, RejectedEnvelope):
            return opened
        text = _dump(envelope, sender.connection_id, random)
        return replace(opened, api=_DumpsDenials(opened.api, text))

    return open_and_wrap


@dataclass(frozen=True)
class _DumpsDenials(AdminApi):
    """One request's API, with another text for CLUSTER_AUTHORIZATION_FAILED."""

    api: AdminApi
    text: str

    def decide(
        self,
        context: RequestContext,
        request: Any,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        return self.api.decide(context, request, image, committed)

    def conflict(self, element: str) -> Outcome:
        return self.api.conflict(element)

    def response(self, context: RequestContext, request: Any, results: Results) -> Any:
        message = self.api.response(context, request, results)
        set_denial_message(context.api_key, message, self.text)
        return message

    def error_response(
        self, request: Any, version: int, error: ErrorCode, message: str | None
    ) -> Any:
        return self.api.error_response(request, version, error, message)


def _dump(envelope: Envelope, connection_id: str | None, random: RandomSource) -> str:
    size = len(envelope.request_header) + len(envelope.request_data)
    inner = DumpedRequest(
        connection_id or envelope.request_id,
        envelope.listener_name,
        envelope.security_protocol,
        session=random.randbytes(4).hex(),
        size=size,
    )
    if connection_id is None:
        return denial_text(inner, None)
    around = len(envelope.principal) + len(envelope.client_address)
    session = random.randbytes(4).hex()
    return denial_text(inner, replace(inner, session=session, size=size + around))
