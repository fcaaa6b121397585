"""Every field of a message arrives at the other end of a channel."""

from __future__ import annotations

from dataclasses import fields

from envelope._pb import envelope_pb2 as pb
from envelope.conversion import envelope_from_pb, envelope_to_pb
from envelope.messages import Envelope, RequestIdentity

ENVELOPE = Envelope(
    identity=RequestIdentity(7, "a1b2", 41),
    request_header=b"\0\x13\0\5",
    request_data=b"the body",
    principal=b"User:alice",
    client_address=bytes(range(16)),
    listener_name="EXTERNAL",
    security_protocol="SASL_SSL",
    dialect="drafted",
    remaining_ms=12_345,
    request_id="7-a1b2-9",
    attempt=3,
    made_by_broker=True,
)


def test_every_field_of_an_envelope_survives_the_channel() -> None:
    defaults = {
        field.name for field in fields(ENVELOPE) if getattr(ENVELOPE, field.name) == field.default
    }
    assert defaults == {"is_as_broker"}, (  # this field alone is not on the wire
        "a default value would also arrive if its field did not"
    )
    batch = pb.BrokerBatch()
    envelope_to_pb(ENVELOPE, batch.envelopes.add())
    received = pb.BrokerBatch.FromString(batch.SerializeToString())
    assert envelope_from_pb(received.envelopes[0]) == ENVELOPE
