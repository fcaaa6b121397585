"""The SASL state machine: valid sequences of requests, and errors."""

from __future__ import annotations

from typing import Any

import pytest

from bridgehead.kafka_wire.messages.api_versions import ApiVersionsRequest
from broker_proxy.authentication.authenticator import (
    Dispatch,
    Expired,
    Reject,
    SaslAuthenticator,
    SendResponse,
)
from tests.unit.broker_proxy.authentication.clients import (
    Credentials,
    ScramClient,
    api_versions,
    authenticate,
    authenticator,
    credential,
    handshake,
    metadata,
    request,
    response_to,
)

ALICE = b"\0alice\0alice-secret"
BOB = b"\0bob\0bob-secret"


def logged_in(token: bytes = ALICE, **how: Any) -> SaslAuthenticator:
    login = authenticator(**how)
    login.receive(handshake("PLAIN"), 0)
    outcome = login.receive(authenticate(token), 0)
    assert isinstance(outcome, SendResponse)
    assert outcome.logged_in
    return login


def test_a_client_logs_in_and_its_requests_are_then_served() -> None:
    login = authenticator()
    assert login.receive(api_versions(), 0) == Dispatch()
    agreed = response_to(login.receive(handshake("PLAIN"), 0), 17, 1)
    assert (agreed.error_code, agreed.mechanisms) == (0, ["PLAIN", "SCRAM-SHA-256"])
    assert login.principal is None
    done = response_to(login.receive(authenticate(ALICE), 0), 36, 2)
    assert (done.error_code, done.error_message, done.session_lifetime_ms) == (0, "", 0)
    assert str(login.principal) == "User:alice"
    assert login.receive(metadata(), 10**12) == Dispatch()


def test_after_a_handshake_of_version_0_tokens_are_sent_without_sasl_authenticate() -> None:
    login = authenticator()
    login.receive(handshake("PLAIN", 0), 0)
    assert login.receive(ALICE, 0) == SendResponse(b"", logged_in=True)
    login = authenticator()
    login.receive(handshake("PLAIN", 0), 0)
    rejected = login.receive(b"\0alice\0wrong", 0)
    assert isinstance(rejected, Reject)
    assert rejected.payload is None


@pytest.mark.parametrize(
    "frames",
    [
        [metadata()],
        [authenticate(ALICE)],
        [api_versions(), metadata()],
        [api_versions(), authenticate(ALICE)],
        [api_versions(), api_versions()],
        [b""],
        [b"\0"],
        [b"\xff" * 40],
        [ALICE],
        [handshake("PLAIN")[:-2]],
        [handshake("PLAIN"), b""],
        [handshake("PLAIN"), ALICE],
        [handshake("PLAIN"), authenticate(ALICE)[:-3]],
        [handshake("PLAIN"), authenticate(ALICE, 0)[:9]],
    ],
)
def test_unexpected_requests_close_the_connection(frames: list[bytes]) -> None:
    login = authenticator()
    for frame in frames[:-1]:
        assert isinstance(login.receive(frame, 0), SendResponse | Dispatch)
    rejected = login.receive(frames[-1], 0)
    assert isinstance(rejected, Reject)
    assert rejected.payload is None
    for late in (authenticate(ALICE), handshake("PLAIN"), metadata(), api_versions()):
        assert isinstance(login.receive(late, 0), Reject)
    assert login.principal is None


def test_another_request_within_the_exchange_gets_illegal_sasl_state() -> None:
    login = authenticator()
    login.receive(handshake("PLAIN"), 0)
    rejected = login.receive(handshake("PLAIN"), 0)
    assert response_to(rejected, 17, 1).error_code == 34
    login = authenticator()
    login.receive(handshake("PLAIN"), 0)
    assert response_to(login.receive(api_versions(), 0), 18, 0).error_code == 34


def test_a_disabled_mechanism_gets_the_enabled_ones() -> None:
    login = authenticator()
    rejected = login.receive(handshake("GSSAPI"), 0)
    results = response_to(rejected, 17, 1)
    assert (results.error_code, results.mechanisms) == (33, ["PLAIN", "SCRAM-SHA-256"])
    assert isinstance(login.receive(handshake("PLAIN"), 0), Reject)


def test_api_versions_may_be_repeated_only_after_an_error() -> None:
    login = authenticator()
    unknown = api_versions()[:2] + b"\0\x63" + api_versions()[4:] + b"\0"
    unnamed = request(18, 3, ApiVersionsRequest(client_software_name=""))
    for frame in (unknown, unnamed, api_versions()):
        assert login.receive(frame, 0) == Dispatch()
    assert isinstance(login.receive(api_versions(), 0), Reject)


def test_a_session_expires_unless_it_is_renewed() -> None:
    login = authenticator(max_reauth_ms=60_000)
    login.receive(handshake("PLAIN"), 0)
    assert response_to(login.receive(authenticate(ALICE), 0), 36, 2).session_lifetime_ms == 60_000
    assert login.receive(metadata(), 59_999) == Dispatch()
    assert isinstance(login.receive(handshake("PLAIN"), 60_000), SendResponse)
    done = login.receive(authenticate(ALICE), 60_002)
    assert isinstance(done, SendResponse)
    assert done.logged_in
    assert login.receive(metadata(), 120_000) == Dispatch()
    assert login.receive(metadata(), 120_003) == Expired()
    assert (login.ends_at_ms, logged_in().ends_at_ms) == (60_000, None)


def test_reauthentication_starts_with_a_handshake() -> None:
    login = logged_in(max_reauth_ms=60_000)
    login.receive(handshake("PLAIN", 0), 1_000)
    assert login.receive(ALICE, 1_000) == SendResponse(b"", logged_in=True)
    rejected = logged_in(max_reauth_ms=60_000).receive(handshake("NOPE"), 1_000)
    assert isinstance(rejected, Reject)
    assert rejected.payload is None


def test_a_session_is_not_renewed_twice_within_a_second() -> None:
    login = logged_in(max_reauth_ms=60_000)
    login.receive(handshake("PLAIN"), 1_000)
    login.receive(authenticate(ALICE), 1_000)
    assert login.receive(handshake("PLAIN"), 1_999) == Dispatch()
    assert isinstance(login.receive(handshake("PLAIN"), 2_000), SendResponse)


def test_a_session_without_a_limit_is_not_renewed() -> None:
    assert logged_in().receive(handshake("PLAIN"), 5_000) == Dispatch()


def test_reauthentication_cannot_change_principal_or_mechanism() -> None:
    login = logged_in(max_reauth_ms=60_000)
    login.receive(handshake("PLAIN"), 1_000)
    rejected = response_to(login.receive(authenticate(BOB), 1_000), 36, 2)
    assert rejected.error_code == 58
    assert "Cannot change principals during re-authentication" in rejected.error_message
    login = logged_in(max_reauth_ms=60_000)
    assert isinstance(login.receive(handshake("SCRAM-SHA-256"), 1_000), SendResponse)
    rejected = login.receive(authenticate(b"n,,n=alice,r=x"), 1_000)
    assert isinstance(rejected, Reject)
    assert rejected.payload is None
    assert str(login.principal) == "User:alice"


def test_a_session_ends_no_later_than_its_token() -> None:
    for expiry_ms, lifetime_ms in ((1_000 + 5_000, 5_000), (1_000 + 99_000, 60_000), (1, 0)):
        tokens = Credentials({"id": credential("hmac")}, {"id": "alice"}, expiry_ms)
        login = authenticator(max_reauth_ms=60_000, tokens=tokens, wall_ms=1_000)
        client = ScramClient("id", "hmac", ",tokenauth=true")
        login.receive(handshake("SCRAM-SHA-256"), 0)
        first = response_to(login.receive(authenticate(client.first()), 0), 36, 2)
        done = response_to(login.receive(authenticate(client.final(first.auth_bytes)), 0), 36, 2)
        assert done.session_lifetime_ms == lifetime_ms
        assert login.ends_at_ms == min(expiry_ms, 1_000 + 60_000)
        assert login.principal is not None
        assert str(login.principal) == "User:alice"
        assert login.principal.token_authenticated
        if lifetime_ms:
            assert login.receive(metadata(), lifetime_ms - 1) == Dispatch()
        assert login.receive(metadata(), lifetime_ms) == Expired()
