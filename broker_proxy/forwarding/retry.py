"""Decides the next step after each reply to an Envelope. KIP-590 §EnvelopeResponse Handling. Pure.

This module contains the full table of
docs/kafka/forwarding.md#outcomes-at-the-forwarding-broker. The forwarding manager executes the
steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from bridgehead.kafka_wire.errors import ErrorCode
from envelope.messages import EnvelopeReply


class NextStep(Enum):
    """What the forwarding broker does next."""

    RELAY = auto()  # return the inner response to the client
    RETRY = auto()  # find the controller and send the same Envelope again
    UNKNOWN_SERVER_ERROR = auto()  # send this error to the client
    CLOSE = auto()  # close the connection, so that the client negotiates versions again
    TIMED_OUT = auto()  # send REQUEST_TIMED_OUT to the client; the outcome is unknown


_STEPS: Final[Mapping[int, NextStep]] = {
    ErrorCode.NONE: NextStep.RELAY,
    ErrorCode.NOT_CONTROLLER: NextStep.RETRY,
    ErrorCode.UNSUPPORTED_VERSION: NextStep.CLOSE,
    ErrorCode.REQUEST_TIMED_OUT: NextStep.TIMED_OUT,
}


def after_reply(reply: EnvelopeReply, *, now_s: float, deadline_s: float) -> NextStep:
    """Return the step after a reply: UNKNOWN_SERVER_ERROR if the table lacks the error."""
    step = _STEPS.get(reply.error_code, NextStep.UNKNOWN_SERVER_ERROR)
    if step is NextStep.RETRY and now_s >= deadline_s:
        return NextStep.TIMED_OUT
    if step is NextStep.RELAY and reply.response_data is None:
        return NextStep.UNKNOWN_SERVER_ERROR
    return step


def after_broken_channel(*, now_s: float, deadline_s: float) -> NextStep:
    """Return the step after a lost connection; RETRY sends the same Envelope again."""
    return NextStep.TIMED_OUT if now_s >= deadline_s else NextStep.RETRY
