"""Follows /delegation_token: reads all tokens once per session, then tokens that change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker_proxy.metadata.change_follower import ChangeFollower, Notifications, log_invalid
from broker_proxy.metadata.token_cache import TokenCache
from cluster_model.delegation_tokens import DelegationToken
from cluster_model.znodes.tokens import TokenChangeZnode
from zookeeper_client.token_reading import StoredTokens, read_some_tokens, read_tokens
from zookeeper_client.wire import ReadMany

TokenFollower = ChangeFollower[str, DelegationToken | None]


def token_follower(cache: TokenCache) -> TokenFollower:
    """Return a follower that keeps a token cache current."""

    async def read_all(read: ReadMany) -> None:
        stored = await read_tokens(read)
        cache.replace_all(stored.tokens)
        _log_undecodable(stored)

    return ChangeFollower(
        Notifications(
            TokenChangeZnode.prefix, TokenChangeZnode.decode, "restart this node, which creates it"
        ),
        _read_some,
        cache.update,
        read_all,
        in_each_session=True,
    )


async def _read_some(
    read: ReadMany, token_ids: Sequence[str]
) -> Mapping[str, DelegationToken | None]:
    stored = await read_some_tokens(read, token_ids)
    _log_undecodable(stored)
    return {token_id: stored.tokens.get(token_id) for token_id in token_ids}


def _log_undecodable(stored: StoredTokens) -> None:
    log_invalid(
        [f"ignoring a delegation token that cannot be decoded: {text}" for text in stored.invalid]
    )
