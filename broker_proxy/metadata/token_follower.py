"""Follows /delegation_token: reads all tokens once per session, then tokens that change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from broker_proxy.metadata.token_cache import TokenCache
from cluster_model.znodes.tokens import TokenChangeZnode
from zookeeper_client.session import NoSuchZnodeError, ZooKeeperSession
from zookeeper_client.token_reading import read_some_tokens, read_tokens
from zookeeper_client.wire import ReadData, ZnodeData

_log = logging.getLogger(__name__)


class TokenFollower:
    """Keeps a token cache current by ZooKeeper's notifications."""

    def __init__(self, cache: TokenCache) -> None:
        self._cache = cache
        self._last_change = ""
        self._read_in: ZooKeeperSession | None = None
        # One read at a time: an older read must not overwrite a newer one.
        self._lock = asyncio.Lock()

    async def follow(self, session: ZooKeeperSession, again: Callable[[], None] | None) -> None:
        """Apply changed tokens. `again`, if given, is called at the next notification.

        The controller purges old notifications, so each new session reads every token.

        Raises:
            ConnectionLostError: the connection broke. Call `follow` again after the reconnect.
        """
        async with self._lock:
            await self._follow(session, again)

    async def _follow(self, session: ZooKeeperSession, again: Callable[[], None] | None) -> None:
        try:
            names = sorted(await session.children(TokenChangeZnode.parent, again))
        except NoSuchZnodeError:
            _log.error(
                "%s is missing: restart this node, which creates it", TokenChangeZnode.parent
            )
            return
        fresh = [name for name in names if name > self._last_change]
        if self._read_in is not session:
            found = await read_tokens(session.read)
            self._cache.replace_all(found.tokens)
            self._read_in = session
        else:
            changes = await session.read(
                [ReadData(f"{TokenChangeZnode.parent}/{name}") for name in fresh]
            )
            ids = {
                (change.data or b"").decode(errors="replace"): None
                for change in changes
                if isinstance(change, ZnodeData)
            }
            # An id with a slash would name a znode elsewhere, so it is ignored.
            wanted = [each for each in ids if each and "/" not in each and "\0" not in each]
            found = await read_some_tokens(session.read, wanted)
            for token_id in wanted:
                self._cache.update(token_id, found.tokens.get(token_id))
        for text in found.invalid:
            _log.error("ignoring a delegation token that cannot be decoded: %s", text)
        if fresh:
            self._last_change = fresh[-1]
