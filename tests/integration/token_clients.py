"""Clients that request delegation tokens, and clients that log in with them."""

from __future__ import annotations

import base64
from typing import Any, Final

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import Connection
from tests.unit.broker_proxy.authentication.clients import ScramClient

CREATE, RENEW, EXPIRE, DESCRIBE = 38, 39, 40, 41
_VERSIONS: Final = {CREATE: 3, RENEW: 2, EXPIRE: 2, DESCRIBE: 3, 17: 1, 36: 2, 60: 0, 19: 4}
LISTENER: Final = "SASL_PLAINTEXT"


class Client:
    """One connection to a broker's SASL listener."""

    def __init__(self, cluster: Cluster, broker: int) -> None:
        self._connection = Connection(cluster.bootstrap_server(broker, LISTENER))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def call(self, key: int, body: dict[str, Any]) -> Any:
        """Return the response body; None when the connection was closed."""
        return self.call_version(key, _VERSIONS[key], body)

    def call_version(self, key: int, version: int, body: dict[str, Any]) -> Any:
        """Like `call`, but with a chosen version."""
        try:
            return self._connection.call(key, version, body)
        except ConnectionError:
            return None

    def log_in(self, user: str) -> Client:
        """Log in with SASL PLAIN and the password `<user>-secret`, as in the recordings."""
        assert self._connection.log_in(user, f"{user}-secret")
        return self

    def log_in_with_token(self, token_id: str, proof: str) -> bool:
        """Log in with SCRAM-SHA-256 and `tokenauth`; `proof` is the HMAC in base64."""
        client = ScramClient(token_id, proof, ",tokenauth=true")
        self.call(17, {"mechanism": "SCRAM-SHA-256"})
        first = self._authenticate(client.first())
        if first is None or first["errorCode"]:
            return False
        last = self._authenticate(client.final(base64.b64decode(first["authBytes"])))
        return last is not None and last["errorCode"] == 0

    def _authenticate(self, data: bytes) -> Any:
        return self.call(36, {"authBytes": base64.b64encode(data).decode()})

    def create(self, *renewers: str, lifetime_ms: int = -1) -> Any:
        """Create a token of this user."""
        named = [{"principalType": "User", "principalName": name} for name in renewers]
        owner = {"ownerPrincipalType": None, "ownerPrincipalName": None}
        return self.call(CREATE, {**owner, "renewers": named, "maxLifetimeMs": lifetime_ms})

    def described(self) -> dict[str, Any]:
        """Return every token that this user can describe, by id."""
        response = self.call(DESCRIBE, {"owners": None})
        assert response["errorCode"] == 0
        return {token["tokenId"]: token for token in response["tokens"]}


def logs_in(cluster: Cluster, broker: int, token: Any) -> bool:
    """Return whether a client can log in with the token."""
    with Client(cluster, broker) as client:
        return client.log_in_with_token(token["tokenId"], token["hmac"])
