"""Error codes: which ones are definite errors, and the message of each code."""

from __future__ import annotations

import doctest
import re

import pytest

from bridgehead.kafka_wire import ApiError, ErrorCode, framing, json_form
from bridgehead.kafka_wire.errors import api_message, is_definite

UNKNOWN_OUTCOMES = (
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.STALE_CONTROLLER_EPOCH,
)


@pytest.mark.parametrize("error", UNKNOWN_OUTCOMES)
def test_unknown_outcome_is_not_definite(error: ErrorCode) -> None:
    assert not is_definite(error)


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
def test_rejection_is_definite(error: ErrorCode) -> None:
    assert is_definite(error)


def test_a_code_that_kafka_does_not_have_is_not_definite() -> None:
    assert not is_definite(max(ErrorCode) + 1)


def test_the_default_text_and_the_text_of_a_server_error_become_a_null_message() -> None:
    exists = ErrorCode.TOPIC_ALREADY_EXISTS
    assert api_message(exists, "Topic 'a' already exists.") == "Topic 'a' already exists."
    assert api_message(exists, exists.default_text) is None
    assert api_message(exists, None) is None
    assert api_message(ErrorCode.UNKNOWN_SERVER_ERROR, "java.lang.NullPointerException") is None


def test_api_error_without_a_message_prints_the_default_text() -> None:
    plain = ApiError(ErrorCode.INVALID_PARTITIONS)
    assert (plain.message, str(plain)) == (None, "Number of partitions is below 1.")
    error = ApiError(ErrorCode.INVALID_PARTITIONS, "0 partitions")
    assert (error.message, str(error)) == ("0 partitions", "0 partitions")


def test_every_error_code_other_than_0_has_a_text() -> None:
    for code in ErrorCode:
        assert bool(re.match(r"[A-Z]", code.default_text)) is (code is not ErrorCode.NONE), code


@pytest.mark.parametrize("module", [framing, json_form])
def test_docstring_examples_run(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0
