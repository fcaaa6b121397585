"""Our Envelope values to protobuf and back. The only module that knows both."""

from __future__ import annotations

from typing import Any

from envelope._pb import envelope_pb2 as pb
from envelope.messages import (
    ApiRanges,
    Envelope,
    EnvelopeAnswer,
    Hello,
    MetadataUpdate,
    RequestIdentity,
)


def envelope_to_pb(envelope: Envelope, into: Any) -> None:
    """Fill one Envelope of a batch."""
    identity = envelope.identity
    into.broker_id = identity.broker_id
    into.incarnation = identity.incarnation
    into.sequence = identity.sequence
    into.broker_epoch = envelope.broker_epoch
    into.request_header = envelope.request_header
    into.request_data = envelope.request_data
    into.principal = envelope.principal
    into.client_host = envelope.client_host
    into.listener_name = envelope.listener_name
    into.security_protocol = envelope.security_protocol
    into.dialect = envelope.dialect
    into.remaining_ms = envelope.remaining_ms
    into.request_id = envelope.request_id
    into.attempt = envelope.attempt
    into.client_software_name = envelope.client_software_name
    into.client_software_version = envelope.client_software_version
    into.made_by_broker = envelope.made_by_broker


def envelope_from_pb(message: Any) -> Envelope:
    """Read one Envelope of a batch."""
    return Envelope(
        RequestIdentity(message.broker_id, message.incarnation, message.sequence),
        message.broker_epoch,
        message.request_header,
        message.request_data,
        message.principal,
        message.client_host,
        message.listener_name,
        message.security_protocol,
        message.dialect,
        message.remaining_ms,
        message.request_id,
        message.attempt,
        message.client_software_name,
        message.client_software_version,
        message.made_by_broker,
    )


def answer_to_pb(sequence: int, answer: EnvelopeAnswer, into: Any) -> None:
    """Fill one answer of a batch."""
    into.sequence = sequence
    into.error_code = answer.error_code
    if answer.response_data is not None:
        into.response_data = answer.response_data
    into.zxid = answer.zxid


def answer_from_pb(message: Any) -> EnvelopeAnswer:
    """Read one answer of a batch."""
    data = message.response_data if message.HasField("response_data") else None
    return EnvelopeAnswer(message.error_code, data, message.zxid)


def update_to_pb(update: MetadataUpdate, into: Any) -> None:
    """Fill one metadata update of a batch."""
    into.controller_id = update.controller_id
    into.controller_epoch = update.controller_epoch
    into.zxid = update.zxid
    into.update_metadata = update.update_metadata
    into.starts_full_image = update.starts_full_image
    into.complete = update.complete


def update_from_pb(message: Any) -> MetadataUpdate:
    """Read one metadata update of a batch."""
    return MetadataUpdate(
        message.controller_id,
        message.controller_epoch,
        message.zxid,
        message.update_metadata,
        message.starts_full_image,
        message.complete,
    )


def hello_to_pb(hello: Hello) -> Any:
    """Return the first thing a broker says."""
    return pb.Hello(
        broker_id=hello.broker_id,
        incarnation=hello.incarnation,
        broker_epoch=hello.broker_epoch,
        cluster_id=hello.cluster_id,
    )


def hello_from_pb(message: Any) -> Hello:
    """Read the first thing a broker says."""
    return Hello(message.broker_id, message.incarnation, message.broker_epoch, message.cluster_id)


def ranges_to_pb(served: ApiRanges) -> Any:
    """Return the Welcome that names what a controller can be asked."""
    welcome = pb.Welcome()
    for key, (lowest, highest) in sorted(served.items()):
        welcome.apis.add(api_key=key, min_version=lowest, max_version=highest)
    return welcome


def ranges_from_pb(welcome: Any) -> ApiRanges:
    """Read what the controller can be asked; nothing when it does not say."""
    return {api.api_key: (api.min_version, api.max_version) for api in welcome.apis}
