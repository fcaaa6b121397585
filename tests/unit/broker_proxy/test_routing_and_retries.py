"""Routes of requests, and the meaning of Envelope replies."""

from __future__ import annotations

from typing import Any

import pytest

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS, Route
from bridgehead.kafka_wire.errors import ErrorCode
from broker_proxy.forwarding.retry import NextStep, after_broken_channel, after_reply
from broker_proxy.requests.routing import WITHOUT_DATA_PLANE, choose_route
from envelope.messages import EnvelopeReply

LOCAL, FORWARD, NOT_CONTROLLER = Route.LOCAL, Route.FORWARD, Route.NOT_CONTROLLER
READS = [
    0,
    1,
    2,
    3,
    *range(8, 19),
    *range(21, 24),
    29,
    32,
    34,
    35,
    36,
    41,
    42,
    47,
    48,
    50,
    58,
    60,
    61,
]
READS += [65, 66, 68, 69]
OF_BROKERS = [56, 67]  # requests of brokers, which only the controller answers
WRITES = [19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 57]


@pytest.mark.parametrize("forwarding", [True, False])
@pytest.mark.parametrize("controller", [True, False])
@pytest.mark.parametrize("key", READS)
def test_reads_are_local(key: int, controller: bool, forwarding: bool) -> None:
    assert _route(key, forwarding, controller) is LOCAL


@pytest.mark.parametrize(
    ("forwarding", "controller", "route"),
    [
        (True, True, FORWARD),  # to the controller in this process; the request has an identity too
        (True, False, FORWARD),
        (False, True, FORWARD),
        (False, False, NOT_CONTROLLER),
    ],
)
@pytest.mark.parametrize("key", WRITES)
def test_writes_are_forwarded_or_get_not_controller(
    key: int, forwarding: bool, controller: bool, route: Route
) -> None:
    for version in API_SPECS[key].versions:
        assert _route(key, forwarding, controller, version) is route


@pytest.mark.parametrize("key", sorted(set(range(-1, 100)) - {*READS, *WRITES, *OF_BROKERS}))
def test_unlisted_apis_have_no_route(key: int) -> None:
    assert _route(key, True, True) is None


def _route(key: int, forwarding: bool, controller: bool, version: int = 0) -> Route | None:
    return choose_route(
        key,
        version,
        dialect="shipped",
        forwarding_enabled=forwarding,
        broker_is_controller=controller,
    )


@pytest.mark.parametrize(
    ("error", "data", "step"),
    [
        (ErrorCode.NONE, b"inner", NextStep.RELAY),
        (ErrorCode.NONE, b"", NextStep.RELAY),  # the response is parsed only when it is relayed
        (ErrorCode.NONE, None, NextStep.UNKNOWN_SERVER_ERROR),
        (ErrorCode.NOT_CONTROLLER, None, NextStep.RETRY),
        (ErrorCode.UNSUPPORTED_VERSION, None, NextStep.CLOSE),
        (ErrorCode.REQUEST_TIMED_OUT, None, NextStep.TIMED_OUT),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None, NextStep.UNKNOWN_SERVER_ERROR),
        (ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, None, NextStep.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_REQUEST, None, NextStep.UNKNOWN_SERVER_ERROR),
        (ErrorCode.UNKNOWN_SERVER_ERROR, None, NextStep.UNKNOWN_SERVER_ERROR),
        (12345, None, NextStep.UNKNOWN_SERVER_ERROR),
    ],
)
def test_each_error_of_an_envelope_has_its_step(
    error: int, data: bytes | None, step: NextStep
) -> None:
    reply = EnvelopeReply(int(error), data, 0)
    assert after_reply(reply, now_s=9.9, deadline_s=10.0) is step


def test_no_retry_begins_after_the_deadline() -> None:
    """NOT_CONTROLLER and a broken channel become REQUEST_TIMED_OUT. A response is relayed."""
    moved = EnvelopeReply(int(ErrorCode.NOT_CONTROLLER), None, 0)
    assert after_reply(moved, now_s=10.0, deadline_s=10.0) is NextStep.TIMED_OUT
    assert after_broken_channel(now_s=10.0, deadline_s=10.0) is NextStep.TIMED_OUT
    assert after_broken_channel(now_s=9.9, deadline_s=10.0) is NextStep.RETRY
    late = EnvelopeReply(0, b"inner", 7)
    assert after_reply(late, now_s=11.0, deadline_s=10.0) is NextStep.RELAY


def test_apis_of_the_data_plane_need_bridgehead_data_plane() -> None:
    key = ApiKey.ALTER_PARTITION
    shipped: dict[str, Any] = {"dialect": "shipped", "forwarding_enabled": True}
    assert choose_route(key, 3, broker_is_controller=True, **shipped) is Route.FORWARD
    assert choose_route(key, 3, broker_is_controller=False, **shipped) is Route.NOT_CONTROLLER
    off = {**shipped, "routes": WITHOUT_DATA_PLANE}
    assert choose_route(key, 3, broker_is_controller=True, **off) is None
