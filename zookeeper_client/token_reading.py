"""Reads delegation tokens from ZooKeeper, for controllers and brokers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cluster_model.delegation_tokens import DelegationToken
from cluster_model.znodes.layout import ZnodeContentError
from cluster_model.znodes.tokens import TokenZnode
from zookeeper_client.wire import ReadChildren, ReadData, ReadMany, ZnodeData


class StoredTokens(NamedTuple):
    """The stored tokens. `invalid` has an error for each invalid znode."""

    tokens: dict[str, DelegationToken]  # by id
    invalid: tuple[str, ...]


async def read_tokens(read: ReadMany) -> StoredTokens:
    """Return all tokens; an empty result if /delegation_token is missing.

    Raises:
        ConnectionLostError: the connection broke.
    """
    (names,) = await read([ReadChildren(TokenZnode.parent)])
    return await read_some_tokens(read, sorted(names) if isinstance(names, list) else ())


async def read_some_tokens(read: ReadMany, token_ids: Iterable[str]) -> StoredTokens:
    """Return the tokens that exist. Raises ConnectionLostError."""
    wanted = list(token_ids)
    znodes = await read([ReadData(TokenZnode.path(token_id)) for token_id in wanted])
    tokens: dict[str, DelegationToken] = {}
    invalid = []
    for token_id, znode in zip(wanted, znodes, strict=True):
        if isinstance(znode, ZnodeData):
            try:
                tokens[token_id] = TokenZnode.decode(token_id, znode.data)
            except ZnodeContentError as wrong:
                invalid.append(str(wrong))
    return StoredTokens(tokens, tuple(invalid))
