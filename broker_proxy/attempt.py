"""What to do after each answer to an Envelope. KIP-590 §EnvelopeResponse Handling. Pure.

The whole table of kafka-semantics 1.7 stands here; the manager only carries it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from bridgehead.kafka_wire.errors import ErrorCode
from envelope.messages import EnvelopeAnswer


class Step(Enum):
    """What the forwarding broker does next."""

    RELAY = auto()  # the inner answer goes to the client, unread
    RETRY = auto()  # nothing yet: find the controller and send the same Envelope again
    UNKNOWN_SERVER_ERROR = auto()  # in the API's own shape; the reason is in the log
    CLOSE = auto()  # the client renegotiates versions over a new connection
    TIMED_OUT = auto()  # REQUEST_TIMED_OUT in the API's own shape; the outcome is unknown


_STEPS: Final[Mapping[int, Step]] = {
    ErrorCode.NONE: Step.RELAY,
    ErrorCode.NOT_CONTROLLER: Step.RETRY,
    ErrorCode.UNSUPPORTED_VERSION: Step.CLOSE,
    ErrorCode.REQUEST_TIMED_OUT: Step.TIMED_OUT,
}


def after_answer(answer: EnvelopeAnswer, *, now_s: float, deadline_s: float) -> Step:
    """Judge an answer. Every error without a row here hides behind UNKNOWN_SERVER_ERROR."""
    step = _STEPS.get(answer.error_code, Step.UNKNOWN_SERVER_ERROR)
    if step is Step.RETRY and now_s >= deadline_s:
        return Step.TIMED_OUT
    if step is Step.RELAY and answer.response_data is None:
        return Step.UNKNOWN_SERVER_ERROR
    return step


def after_broken_channel(*, now_s: float, deadline_s: float) -> Step:
    """Judge a lost connection: the same Envelope again, under the same identity."""
    return Step.TIMED_OUT if now_s >= deadline_s else Step.RETRY
