"""What may follow what on the way through SASL, and what comes of the rest."""

from __future__ import annotations

import pytest

from bridgehead.kafka_wire.messages.api_versions import ApiVersionsRequest
from broker_proxy.authentication.authenticator import (
    Dispatch,
    Expired,
    Refuse,
    Reply,
    SaslAuthenticator,
)
from tests.unit.authentication.clients import (
    Credentials,
    ScramClient,
    answer,
    api_versions,
    authenticate,
    authenticator,
    credential,
    handshake,
    metadata,
    request,
)

ALICE = b"\0alice\0alice-secret"
BOB = b"\0bob\0bob-secret"


def logged_in(token: bytes = ALICE, **how: int) -> SaslAuthenticator:
    login = authenticator(**how)
    login.receive(handshake("PLAIN"), 0)
    outcome = login.receive(authenticate(token), 0)
    assert isinstance(outcome, Reply)
    assert outcome.logged_in
    return login


def test_a_client_logs_in_and_is_then_served() -> None:
    """ApiVersions first, as every client does; the principal is the user."""
    login = authenticator()
    assert login.receive(api_versions(), 0) == Dispatch()
    agreed = answer(login.receive(handshake("PLAIN"), 0), 17, 1)
    assert (agreed.error_code, agreed.mechanisms) == (0, ["PLAIN", "SCRAM-SHA-256"])
    assert login.principal is None
    done = answer(login.receive(authenticate(ALICE), 0), 36, 2)
    assert (done.error_code, done.error_message, done.session_lifetime_ms) == (0, "", 0)
    assert str(login.principal) == "User:alice"
    assert login.receive(metadata(), 10**12) == Dispatch()


def test_after_the_first_handshake_version_tokens_come_bare() -> None:
    """A failure is then a closed connection without a word."""
    login = authenticator()
    login.receive(handshake("PLAIN", 0), 0)
    assert login.receive(ALICE, 0) == Reply(b"", logged_in=True)
    login = authenticator()
    login.receive(handshake("PLAIN", 0), 0)
    refused = login.receive(b"\0alice\0wrong", 0)
    assert isinstance(refused, Refuse)
    assert refused.payload is None


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
def test_what_comes_out_of_turn_is_a_closed_connection(frames: list[bytes]) -> None:
    """Without an answer, and nothing that follows is served."""
    login = authenticator()
    for frame in frames[:-1]:
        assert isinstance(login.receive(frame, 0), Reply | Dispatch)
    refused = login.receive(frames[-1], 0)
    assert isinstance(refused, Refuse)
    assert refused.payload is None
    for late in (authenticate(ALICE), handshake("PLAIN"), metadata(), api_versions()):
        assert isinstance(login.receive(late, 0), Refuse)
    assert login.principal is None


def test_within_the_exchange_another_request_is_told_of_the_illegal_state() -> None:
    """In its own shape; then the connection is closed."""
    login = authenticator()
    login.receive(handshake("PLAIN"), 0)
    refused = login.receive(handshake("PLAIN"), 0)
    assert answer(refused, 17, 1).error_code == 34
    login = authenticator()
    login.receive(handshake("PLAIN"), 0)
    assert answer(login.receive(api_versions(), 0), 18, 0).error_code == 34


def test_a_mechanism_that_is_not_enabled_is_answered_with_those_that_are() -> None:
    """And the connection is over."""
    login = authenticator()
    refused = login.receive(handshake("GSSAPI"), 0)
    told = answer(refused, 17, 1)
    assert (told.error_code, told.mechanisms) == (33, ["PLAIN", "SCRAM-SHA-256"])
    assert isinstance(login.receive(handshake("PLAIN"), 0), Refuse)


def test_api_versions_may_be_asked_again_only_when_it_was_refused() -> None:
    """An unknown version and a bad software name are refused; the client tries again."""
    login = authenticator()
    unknown = api_versions()[:2] + b"\0\x63" + api_versions()[4:] + b"\0"
    unnamed = request(18, 3, ApiVersionsRequest(client_software_name=""))
    for frame in (unknown, unnamed, api_versions()):
        assert login.receive(frame, 0) == Dispatch()
    assert isinstance(login.receive(api_versions(), 0), Refuse)


def test_a_session_ends_and_is_renewed_on_its_connection() -> None:
    """The client is told how long it lasts; in time it is renewed, later it is closed."""
    login = authenticator(max_reauth_ms=60_000)
    login.receive(handshake("PLAIN"), 0)
    assert answer(login.receive(authenticate(ALICE), 0), 36, 2).session_lifetime_ms == 60_000
    assert login.receive(metadata(), 60_000) == Dispatch()
    assert isinstance(login.receive(handshake("PLAIN"), 60_001), Reply)
    done = login.receive(authenticate(ALICE), 60_002)
    assert isinstance(done, Reply)
    assert done.logged_in
    assert login.receive(metadata(), 120_000) == Dispatch()
    assert login.receive(metadata(), 120_003) == Expired()


def test_a_renewal_begins_anew() -> None:
    """Bare tokens after the first handshake version; no word about another mechanism."""
    login = logged_in(max_reauth_ms=60_000)
    login.receive(handshake("PLAIN", 0), 1_000)
    assert login.receive(ALICE, 1_000) == Reply(b"", logged_in=True)
    refused = logged_in(max_reauth_ms=60_000).receive(handshake("NOPE"), 1_000)
    assert isinstance(refused, Refuse)
    assert refused.payload is None


def test_a_session_is_not_renewed_twice_within_a_second() -> None:
    """The second handshake is an ordinary request, which is told of its illegal state."""
    login = logged_in(max_reauth_ms=60_000)
    login.receive(handshake("PLAIN"), 1_000)
    login.receive(authenticate(ALICE), 1_000)
    assert login.receive(handshake("PLAIN"), 1_999) == Dispatch()
    assert isinstance(login.receive(handshake("PLAIN"), 2_000), Reply)


def test_without_a_limit_there_is_nothing_to_renew() -> None:
    """SaslHandshake goes where every request goes, and is refused there."""
    assert logged_in().receive(handshake("PLAIN"), 5_000) == Dispatch()


def test_nobody_becomes_somebody_else_while_connected() -> None:
    """Neither under another name nor with another mechanism."""
    login = logged_in(max_reauth_ms=60_000)
    login.receive(handshake("PLAIN"), 1_000)
    refused = answer(login.receive(authenticate(BOB), 1_000), 36, 2)
    assert refused.error_code == 58
    assert "Cannot change principals during re-authentication" in refused.error_message
    login = logged_in(max_reauth_ms=60_000)
    assert isinstance(login.receive(handshake("SCRAM-SHA-256"), 1_000), Reply)
    refused = login.receive(authenticate(b"n,,n=alice,r=x"), 1_000)
    assert isinstance(refused, Refuse)
    assert refused.payload is None
    assert str(login.principal) == "User:alice"


def test_a_token_ends_a_session_before_the_broker_would() -> None:
    """The shorter of both counts; a token that is over allows nothing at all."""
    for expiry_ms, lifetime_ms in ((1_000 + 5_000, 5_000), (1_000 + 99_000, 60_000), (1, 0)):
        tokens = Credentials({"id": credential("hmac")}, {"id": "alice"}, expiry_ms)
        login = authenticator(max_reauth_ms=60_000, tokens=tokens, wall_ms=1_000)
        client = ScramClient("id", "hmac", ",tokenauth=true")
        login.receive(handshake("SCRAM-SHA-256"), 0)
        first = answer(login.receive(authenticate(client.first()), 0), 36, 2)
        done = answer(login.receive(authenticate(client.final(first.auth_bytes)), 0), 36, 2)
        assert done.session_lifetime_ms == lifetime_ms
        assert login.principal is not None
        assert str(login.principal) == "User:alice"
        assert login.principal.token_authenticated
        assert login.receive(metadata(), lifetime_ms) == Dispatch()
        assert login.receive(metadata(), lifetime_ms + 1) == Expired()
