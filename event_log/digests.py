"""Digests of requests and answers: both ends of the Envelope write them down, and F2 compares.

A message that holds a secret has none: whoever knows the rest of it could try passwords until the
digest is right. AlterConfigs and IncrementalAlterConfigs may hold passwords of brokers; besides,
the broker that they reach answers a part of them itself and forwards what is left.
"""

from __future__ import annotations

import hashlib
from typing import Final

# RenewDelegationToken, ExpireDelegationToken, AlterUserScramCredentials; and the two above.
_BODIES_WITH_SECRETS: Final = frozenset({33, 39, 40, 44, 51})
_ANSWERS_WITH_SECRETS: Final = frozenset({38})  # CreateDelegationToken


def body_sha256(api_key: int, body: bytes) -> str | None:
    """Return the digest of a request without its header; None where it may hold a secret."""
    return None if api_key in _BODIES_WITH_SECRETS else hashlib.sha256(body).hexdigest()


def answer_sha256(api_key: int, answer: bytes) -> str | None:
    """Return the digest of an Envelope's inner answer, header and body; None as above."""
    return None if api_key in _ANSWERS_WITH_SECRETS else hashlib.sha256(answer).hexdigest()
