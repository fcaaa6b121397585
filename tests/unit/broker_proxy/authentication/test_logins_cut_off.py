"""After a failed login the broker closes the connection; some get an error response first.

As in Kafka 3.9.1, the broker closes the connection, without a response, after a SCRAM proof of the
wrong length and after an OAUTHBEARER scheme other than Bearer. A malformed OAUTHBEARER message gets
SASL_AUTHENTICATION_FAILED, like a wrong credential.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker_proxy.authentication.authenticator import (
    LoginOutcome,
    Mechanism,
    Reject,
    SaslAuthenticator,
    SendResponse,
)
from broker_proxy.authentication.oauthbearer import OAuthBearerServer
from broker_proxy.authentication.unsecured_jws import UnsecuredJwsValidator
from cluster_model.principal import KafkaPrincipal
from tests.unit.broker_proxy.authentication.clients import (
    Credentials,
    ScramClient,
    authenticate,
    authenticator,
    credential,
    handshake,
    response_to,
)

FAILED = 58


def scram_outcome(spoil: Callable[[bytes], bytes]) -> LoginOutcome:
    """The outcome of a SCRAM login with a changed proof."""
    login = authenticator(users=Credentials({"alice": credential("pencil")}))
    login.receive(handshake("SCRAM-SHA-256"), 0)
    client = ScramClient("alice", "pencil")
    challenge = response_to(login.receive(authenticate(client.first()), 0), 36, 2).auth_bytes
    return login.receive(authenticate(client.final(challenge, tamper=spoil)), 0)


@pytest.mark.parametrize(
    "spoil",
    [lambda _: b"", lambda p: p[:16], lambda p: p[:-1], lambda p: p + b"\0", lambda p: p + p],
)
def test_a_proof_of_the_wrong_length_closes_the_connection(spoil: Callable[[bytes], bytes]) -> None:
    outcome = scram_outcome(spoil)
    assert isinstance(outcome, Reject)
    assert outcome.payload is None


def test_a_wrong_proof_gets_an_error() -> None:
    assert response_to(scram_outcome(lambda proof: bytes(len(proof))), 36, 2).error_code == FAILED
    assert isinstance(scram_outcome(lambda proof: proof), SendResponse)


def oauth_outcome(text: str) -> LoginOutcome:
    """The outcome of a first OAUTHBEARER message."""
    validator = UnsecuredJwsValidator({}, lambda: 0)
    login = SaslAuthenticator(
        {"OAUTHBEARER": Mechanism(lambda: OAuthBearerServer(validator))},
        lambda _, result: KafkaPrincipal("User", result.authorization_id),
        lambda: 0,
    )
    login.receive(handshake("OAUTHBEARER"), 0)
    return login.receive(authenticate(text.encode()), 0)


@pytest.mark.parametrize("scheme", ["Basic", "Bea_rer", "Digest9"])
def test_a_scheme_other_than_bearer_closes_the_connection(scheme: str) -> None:
    outcome = oauth_outcome(f"n,,\1auth={scheme} abc\1\1")
    assert isinstance(outcome, Reject)
    assert outcome.payload is None


@pytest.mark.parametrize(
    "text",
    [
        "n,,\1auth=abc\1\1",
        "n,,\1\1",
        "n,,\1auth=a-b abc\1\1",
        "n,,\1AUTH=Bearer abc\1\1",
        "n,,\1auth=Bearer \1\1",
    ],
)
def test_a_malformed_message_gets_an_error(text: str) -> None:
    assert response_to(oauth_outcome(text), 36, 2).error_code == FAILED
