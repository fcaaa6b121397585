"""What an error means: whose text is sent, which errors settle what happened."""

from __future__ import annotations

import doctest
import re

import pytest

from bridgehead.kafka_wire import ApiError, ErrorCode, framing, json_form
from bridgehead.kafka_wire.errors import api_message

UNKNOWN_OUTCOMES = (
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.STALE_CONTROLLER_EPOCH,
)


@pytest.mark.parametrize("error", UNKNOWN_OUTCOMES)
def test_no_unknown_outcome_has_a_definite_code(error: ErrorCode) -> None:
    """A checker may believe a definite error; these leave open what happened."""
    assert not error.definite


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_REQUEST,
    ],
)
def test_a_refusal_is_definite(error: ErrorCode) -> None:
    """Refused before anything was written."""
    assert error.definite


def test_the_message_rule_of_kafka() -> None:
    """Null for -1 and for a text that says no more than the code; otherwise the text."""
    exists = ErrorCode.TOPIC_ALREADY_EXISTS
    assert api_message(exists, "Topic 'a' already exists.") == "Topic 'a' already exists."
    assert api_message(exists, exists.default_text) is None
    assert api_message(exists, None) is None
    assert api_message(ErrorCode.UNKNOWN_SERVER_ERROR, "java.lang.NullPointerException") is None


def test_an_api_error_says_what_is_wrong() -> None:
    """Its text is the given one, or the code's own; `message` keeps the difference."""
    plain = ApiError(ErrorCode.INVALID_PARTITIONS)
    assert (plain.message, str(plain)) == (None, "Number of partitions is below 1.")
    told = ApiError(ErrorCode.INVALID_PARTITIONS, "0 partitions")
    assert (told.message, str(told)) == ("0 partitions", "0 partitions")


def test_every_text_is_a_sentence_or_nothing() -> None:
    """Only NONE has no text."""
    for code in ErrorCode:
        assert bool(re.match(r"[A-Z]", code.default_text)) is (code is not ErrorCode.NONE), code


@pytest.mark.parametrize("module", [framing, json_form])
def test_the_examples_in_the_docstrings_are_true(module: object) -> None:
    """Documentation that is run."""
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0
