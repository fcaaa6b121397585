"""What an exception means: for the client, the operator and our office. The only such table."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from controller.store.port import ControllerMovedError, UnknownOutcomeError


@dataclass(frozen=True, slots=True)
class Ruling:
    """One answer to one exception."""

    error: ErrorCode  # outer error of the Envelope
    is_fault: bool  # count it, log it with its traceback
    causes_resignation: bool  # a fresh controller must load from ZooKeeper


def rule_on(exception: BaseException) -> Ruling:
    """Translate any exception that ends a controller's work on a request."""
    match exception:
        case ApiError():
            return Ruling(exception.error, is_fault=False, causes_resignation=False)
        case ControllerMovedError() | UnknownOutcomeError():
            return Ruling(ErrorCode.NOT_CONTROLLER, is_fault=False, causes_resignation=True)
        case _:
            return Ruling(ErrorCode.NOT_CONTROLLER, is_fault=True, causes_resignation=True)
