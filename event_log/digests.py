"""Digests of requests and responses, which brokers and controllers record in their events.

The property F2 (bytes_are_preserved) compares them. Messages that can contain secrets have no
digest, because it would help to guess the secret. AlterConfigs and IncrementalAlterConfigs can
contain passwords. Digests of them would not be comparable anyway: the receiving broker may answer a
part of such a request itself, and then forwards only the rest.
"""

from __future__ import annotations

import hashlib
from typing import Final

from bridgehead.kafka_wire.api_key import ApiKey

_BODIES_WITH_SECRETS: Final = frozenset(
    {
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    }
)
_RESPONSES_WITH_SECRETS: Final = frozenset({ApiKey.CREATE_DELEGATION_TOKEN})


def body_sha256(api_key: int, body: bytes) -> str | None:
    """Return the digest of a request without its header; None if it can contain a secret."""
    return None if api_key in _BODIES_WITH_SECRETS else hashlib.sha256(body).hexdigest()


def response_sha256(api_key: int, response: bytes) -> str | None:
    """Return the digest of an embedded response, with header; None if it can contain a secret."""
    return None if api_key in _RESPONSES_WITH_SECRETS else hashlib.sha256(response).hexdigest()
