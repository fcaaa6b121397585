"""The znodes of delegation tokens (docs/kafka/znodes.md): JSON in Kafka's key order, no spaces."""

from __future__ import annotations

from typing import Final

import orjson

from cluster_model.delegation_tokens import DelegationToken
from cluster_model.principal import KafkaPrincipal
from cluster_model.znodes.entity_names import desanitize, sanitize
from cluster_model.znodes.layout import ZnodeContentError

_VERSION: Final = 3


class TokenZnode:
    """/delegation_token/tokens/<token id>: a token, without its HMAC."""

    parent: Final = "/delegation_token/tokens"

    @staticmethod
    def path(token_id: str) -> str:
        """Return the path of one token."""
        return f"{TokenZnode.parent}/{token_id}"

    @staticmethod
    def encode(token: DelegationToken) -> bytes:
        """Return the content, version 3."""
        return orjson.dumps(
            {
                "issueTimestamp": token.issue_ms,
                "renewers": [sanitize(str(renewer)) for renewer in token.renewers],
                "tokenRequester": sanitize(str(token.requester)),
                "tokenId": token.token_id,
                "owner": sanitize(str(token.owner)),
                "expiryTimestamp": token.expiry_ms,
                "maxTimestamp": token.max_ms,
                "version": _VERSION,
            }
        )

    @staticmethod
    def decode(token_id: str, data: bytes | None) -> DelegationToken:
        """Read versions 1 to 3; before version 3, the requester is the owner.

        Raises:
            ZnodeContentError: the content is not a token, or has another id.
        """
        try:
            value = orjson.loads(data or b"")
            if not 0 < value["version"] <= _VERSION or value["tokenId"] != token_id:
                raise ValueError("unknown version, or another token id")
            owner = _principal(value["owner"])
            requester = _principal(value["tokenRequester"]) if value["version"] >= 3 else owner
            return DelegationToken(
                token_id=token_id,
                owner=owner,
                requester=requester,
                renewers=tuple(_principal(renewer) for renewer in value["renewers"]),
                issue_ms=int(value["issueTimestamp"]),
                expiry_ms=int(value["expiryTimestamp"]),
                max_ms=int(value["maxTimestamp"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ZnodeContentError(f"{TokenZnode.path(token_id)}: {error!r}") from None


def _principal(stored: str) -> KafkaPrincipal:
    kind, colon, name = (desanitize(stored) or stored).partition(":")
    if not colon:
        raise ValueError("the principal has no type")
    return KafkaPrincipal(kind, name)


class TokenChangeZnode:
    """/delegation_token/token_changes/token_change_<n>: notifies brokers of a changed token.

    Its content is the token id as text.
    """

    parent: Final = "/delegation_token/token_changes"
    prefix: Final = "/delegation_token/token_changes/token_change_"


# Created by Kafka's token manager if there is a secret key.
TOKEN_PATHS: Final = (TokenZnode.parent, TokenChangeZnode.parent)
