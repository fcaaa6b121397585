"""Converts Envelope values to protobuf and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from envelope._pb import envelope_pb2 as pb
from envelope.messages import (
    ApiRanges,
    Envelope,
    EnvelopeReply,
    Hello,
    MetadataUpdate,
    RequestIdentity,
)

# Fields that have the same name in Envelope and in protobuf. `is_as_broker` is not sent.
_ENVELOPE: Final = {field.name for field in fields(Envelope)} - {
    *("identity", "client_address", "is_as_broker")
}
_TEXTS: Final = ("incarnation", "listener_name", "security_protocol", "request_id")
_TEXT_CHARACTERS_MAX: Final = 300
_UPDATE: Final = [field.name for field in fields(MetadataUpdate) if field.name != "message"]


class MalformedMessageError(Exception):
    """A text in a message is too long or not printable. Our brokers send no such texts."""


def envelope_to_pb(envelope: Envelope, into: Any) -> None:
    """Fill one Envelope of a BrokerBatch."""
    into.broker_id, into.incarnation, into.sequence = envelope.identity
    into.client_host = envelope.client_address
    for name in _ENVELOPE:
        setattr(into, name, getattr(envelope, name))


def envelope_from_pb(message: Any) -> Envelope:
    """Read one Envelope of a BrokerBatch.

    Raises:
        MalformedMessageError: a text would not fit into a log line.
    """
    for name in _TEXTS:
        _check_text(getattr(message, name))
    return Envelope(
        identity=RequestIdentity(message.broker_id, message.incarnation, message.sequence),
        client_address=message.client_host,
        **{name: getattr(message, name) for name in _ENVELOPE},
    )


def reply_to_pb(sequence: int, reply: EnvelopeReply, into: Any) -> None:
    """Fill one reply of a ControllerBatch."""
    into.sequence = sequence
    into.error_code = reply.error_code
    if reply.response_data is not None:
        into.response_data = reply.response_data
    into.zxid = reply.zxid


def reply_from_pb(message: Any) -> EnvelopeReply:
    """Read one reply of a ControllerBatch."""
    data = message.response_data if message.HasField("response_data") else None
    return EnvelopeReply(message.error_code, data, message.zxid)


def update_to_pb(update: MetadataUpdate, into: Any) -> None:
    """Fill one metadata update of a ControllerBatch."""
    for name in _UPDATE:
        setattr(into, name, getattr(update, name))


def update_from_pb(message: Any) -> MetadataUpdate:
    """Read one metadata update of a ControllerBatch."""
    return MetadataUpdate(**{name: getattr(message, name) for name in _UPDATE})


def hello_to_pb(hello: Hello) -> Any:
    """Return the Hello, the first message of a broker on a stream."""
    return pb.Hello(broker_id=hello.broker_id, incarnation=hello.incarnation)


def hello_from_pb(message: Any) -> Hello:
    """Read the Hello, the first message of a broker on a stream.

    Raises:
        MalformedMessageError: the incarnation would not fit into a log line.
    """
    _check_text(message.incarnation)
    return Hello(message.broker_id, message.incarnation)


def ranges_to_pb(served: ApiRanges) -> Any:
    """Return the Welcome, which lists the controller's APIs and their versions."""
    welcome = pb.Welcome()
    for key, (lowest, highest) in sorted(served.items()):
        welcome.apis.add(api_key=key, min_version=lowest, max_version=highest)
    return welcome


def ranges_from_pb(welcome: Any) -> ApiRanges:
    """Return the controller's APIs and their versions; {} if it sends none."""
    return {api.api_key: (api.min_version, api.max_version) for api in welcome.apis}


def _check_text(text: str) -> None:
    if len(text) > _TEXT_CHARACTERS_MAX or not text.isprintable():
        raise MalformedMessageError
