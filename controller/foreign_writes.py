"""What others write while this controller is in office: its image must know, or its writes meet it.

Brokers below the bridge release write configs, ACLs, quotas and tokens themselves, and Kafka's
tools once did. The broker of this node is notified of each; where what it read is not what the
image says, ZooKeeper is asked again, between two rounds of decisions. The controller's own writes
come by here too, and are known already.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, cast

from bridgehead.authorizer import ResourcePattern
from cluster_model.config_steps import user_and_client
from cluster_model.delegation_tokens import DelegationToken
from cluster_model.records import ConfigResource
from cluster_model.session_state import ConnectionLostError
from cluster_model.znodes import ConfigZnode
from controller.loop import ControllerLoop
from controller.store.load import read_acl
from zookeeper_client.config_reading import read_some_configs
from zookeeper_client.token_reading import read_some_tokens
from zookeeper_client.wire import ReadChildren, ReadMany

_log = logging.getLogger(__name__)
_AGAIN_S: Final = 0.1

Reading = Callable[[ControllerLoop, ReadMany], Awaitable[None]]


class ForeignWrites:
    """Of one candidate; does nothing while it is not in office."""

    def __init__(
        self,
        in_office: Callable[[], ControllerLoop | None],
        reader: Callable[[], ReadMany | None],
    ) -> None:
        """`reader` reads through the controller's own session; None: there is none."""
        self._in_office = in_office
        self._reader = reader
        self._unread: set[asyncio.Future[None]] = set()

    def acl_seen(self, pattern: ResourcePattern, version: int | None) -> None:
        """This node's broker read a pattern's znode; None: it is gone."""
        loop = self._in_office()
        if loop is not None and loop.image.acl_versions.get(pattern) != version:
            self._read(loop, partial(_read_acl, pattern=pattern))

    def config_seen(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """...a config; one that is gone has none."""
        loop = self._in_office()
        if loop is not None and loop.image.configs.get(resource, {}) != configs:
            self._read(loop, partial(_read_config, resource=resource))

    def token_seen(self, token_id: str, token: DelegationToken | None) -> None:
        """...a delegation token; None: it is gone."""
        loop = self._in_office()
        if loop is not None and loop.image.tokens.get(token_id) != token:
            self._read(loop, partial(_read_token, token_id=token_id))

    async def settled(self) -> None:
        """Return once the image holds whatever was seen so far, or office is over."""
        if self._unread:
            await asyncio.wait(tuple(self._unread))

    def office_is_over(self) -> None:
        """Nothing is read any more: the next one in office loads everything."""
        for known in tuple(self._unread):
            _settle(known)

    def _read(self, loop: ControllerLoop, reading: Reading) -> None:
        known: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unread.add(known)
        known.add_done_callback(self._unread.discard)

        async def chore() -> None:
            read = self._reader()
            try:
                if read is not None and loop is self._in_office():
                    await reading(loop, read)
                _settle(known)
            except ConnectionLostError:
                asyncio.get_running_loop().call_later(_AGAIN_S, loop.start_chore, chore)

        loop.start_chore(chore)


def _settle(known: asyncio.Future[None]) -> None:
    if not known.done():
        known.set_result(None)


async def _read_acl(loop: ControllerLoop, read: ReadMany, *, pattern: ResourcePattern) -> None:
    entries, version = await read_acl(read, pattern)
    loop.image = loop.image.with_acl(pattern, entries, version)


async def _read_token(loop: ControllerLoop, read: ReadMany, *, token_id: str) -> None:
    found = await read_some_tokens(read, [token_id])
    loop.image = loop.image.with_token(token_id, found.tokens.get(token_id))


async def _read_config(loop: ControllerLoop, read: ReadMany, *, resource: ConfigResource) -> None:
    """A client below a user brings its parents with it, or takes them along when it goes."""
    resources, user = [resource], ""
    if resource.entity_type == "users":
        user, client = user_and_client(resource)
        if client is not None:
            resources.append(ConfigResource("users", user))
    found = await read_some_configs(read, resources)
    for text in found.refused:
        _log.error("%s", text)
    image = loop.image
    for each in resources:
        image = image.with_config(each, found.configs.get(each), found.versions.get(each, 0))
    if user:
        path = ConfigZnode.path(ConfigResource("users", user))
        (below,) = await read([ReadChildren(f"{path}/clients")])
        clients = None if below is None else frozenset(cast(list[str], below))
        image = image.with_user_clients(user, clients)
    loop.image = image
