"""Updates the image after writes that others make while this controller is active.

Brokers below the bridge release and old tools of Kafka write configs, quotas, ACLs and tokens to
ZooKeeper themselves. This node's broker reports each change that it reads. If a report differs from
the image, the loop reads the znodes again between two rounds of requests. The controller's own
writes are already in the image.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, cast

from bridgehead.authorizer import ResourcePattern
from cluster_model.acls.bindings import Entries
from cluster_model.configs.steps import user_and_client
from cluster_model.delegation_tokens import DelegationToken
from cluster_model.records import ConfigResource
from cluster_model.session_state import ConnectionLostError
from cluster_model.znodes.layout import ConfigZnode
from controller.loop.loop import ControllerLoop
from zookeeper_client.acl_reading import read_some_acls
from zookeeper_client.config_reading import read_some_configs
from zookeeper_client.token_reading import read_some_tokens
from zookeeper_client.wire import ReadChildren, ReadMany

_log = logging.getLogger(__name__)
_RETRY_S: Final = 0.1

_Reading = Callable[[ControllerLoop, ReadMany], Awaitable[None]]


class ExternalWrites:
    """Handles the broker's reports of changes; ignores them unless this candidate is active.

    A new controller reads everything anyway.
    """

    def __init__(self) -> None:
        self._loop: ControllerLoop | None = None
        self._read_many: ReadMany | None = None
        self._unread: set[asyncio.Future[None]] = set()

    def start(self, loop: ControllerLoop, read: ReadMany) -> None:
        """Accept reports from now on: the state is loaded."""
        self._loop, self._read_many = loop, read

    def stop(self) -> None:
        """Ignore reports from now on: this controller has resigned."""
        self._loop = self._read_many = None
        for done in tuple(self._unread):
            _complete(done)

    def acl_seen(self, pattern: ResourcePattern, entries: Entries, version: int | None) -> None:
        """The broker read a pattern's ACL znode. `version` is None if there is no such znode.

        Both the entries and the version are compared, because a znode that was deleted and created
        again may have the same version as before.
        """
        if self._loop is None:
            return
        image = self._loop.image
        if (image.acls.entries(pattern), image.acl_versions.get(pattern)) != (entries, version):
            self._schedule(partial(_read_acl, pattern=pattern))

    def config_seen(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """The broker read the configs of a resource. They are empty if there is no such znode."""
        if self._loop is not None and self._loop.image.configs.get(resource, {}) != configs:
            self._schedule(partial(_read_config, resource=resource))

    def token_seen(self, token_id: str, token: DelegationToken | None) -> None:
        """The broker read a delegation token. `token` is None if there is no such token."""
        if self._loop is not None and self._loop.image.tokens.get(token_id) != token:
            self._schedule(partial(_read_token, token_id=token_id))

    async def caught_up(self) -> None:
        """Wait until the image includes every change reported so far, or until stop()."""
        if self._unread:
            await asyncio.wait(tuple(self._unread))

    def _schedule(self, reading: _Reading) -> None:
        loop, read = self._loop, self._read_many
        assert loop is not None
        assert read is not None
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unread.add(done)
        done.add_done_callback(self._unread.discard)

        async def read_again() -> None:
            try:
                await reading(loop, read)
                _complete(done)
            except ConnectionLostError:
                asyncio.get_running_loop().call_later(_RETRY_S, loop.schedule, read_again)

        loop.schedule(read_again)


def _complete(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


async def _read_acl(loop: ControllerLoop, read: ReadMany, *, pattern: ResourcePattern) -> None:
    acls, _ = await read_some_acls(read, [pattern])
    loop.image = loop.image.with_acl(pattern, *acls[pattern])


async def _read_token(loop: ControllerLoop, read: ReadMany, *, token_id: str) -> None:
    tokens = await read_some_tokens(read, [token_id])
    loop.image = loop.image.with_token(token_id, tokens.tokens.get(token_id))


async def _read_config(loop: ControllerLoop, read: ReadMany, *, resource: ConfigResource) -> None:
    """Read the configs of one resource.

    For a user or a user's client, also read the names of the user's clients; for a client, also the
    user's configs. The first quota of a client creates the user's znodes, and the removal of the
    last one deletes them.
    """
    resources, user = [resource], ""
    if resource.entity_type == "users":
        user, client = user_and_client(resource)
        if client is not None:
            resources.append(ConfigResource("users", user))
    configs = await read_some_configs(read, resources)
    for text in configs.invalid:
        _log.error("%s", text)
    image = loop.image
    for changed in resources:
        image = image.with_config(
            changed, configs.configs.get(changed), configs.versions.get(changed, 0)
        )
    if user:
        path = ConfigZnode.path(ConfigResource("users", user))
        (below,) = await read([ReadChildren(f"{path}/clients")])
        clients = None if below is None else frozenset(cast(list[str], below))
        image = image.with_user_clients(user, clients)
    loop.image = image
