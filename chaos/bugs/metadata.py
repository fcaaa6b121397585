"""Bugs of how brokers learn and apply metadata."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

from bridgehead.authorizer import ResourcePattern
from broker_proxy.metadata.learned_acls import LearnedAcls
from broker_proxy.metadata.session import ZooKeeperWatcher
from chaos.bugs.bug import Bug, Composition, Run, part, settings
from cluster_model.acls.bindings import Entries
from controller.controller import Controller
from controller.services import Peer, Services, Settings
from envelope.channel import ControllerChannel
from envelope.messages import MetadataUpdate

_REPEATED_AFTER_S: Final = 0.2


def _without_waiting(settings: Settings) -> Settings:
    return replace(settings, waits_for_brokers=False)


def _with_repeats(composition: Composition) -> Composition:
    channel = partial(_channel_with_repeats, composition.collaborators.channel)
    return replace(composition, collaborators=replace(composition.collaborators, channel=channel))


def _channel_with_repeats(
    new_channel: Callable[..., ControllerChannel],
    *arguments: Any,
    on_update: Callable[[MetadataUpdate], None],
    **others: Any,
) -> ControllerChannel:
    loop = asyncio.get_running_loop()

    def apply(update: MetadataUpdate) -> None:
        on_update(update)
        if update.complete and not update.starts_full_image:
            loop.call_later(_REPEATED_AFTER_S, on_update, update)

    return new_channel(*arguments, on_update=apply, **others)


class _ForgetsRestartedBrokers(Controller):
    def __init__(self, settings: Settings, services: Services) -> None:
        self._seen = set[int]()  # broker ids
        super().__init__(settings, services)

    def connected(self, peer: Peer) -> None:
        broker_id = cast(Any, peer).hello.broker_id
        if broker_id not in self._seen:
            super().connected(peer)
        self._seen.add(broker_id)


class _UnregisteredWatcher(ZooKeeperWatcher):
    async def _follow_registration(self) -> None:
        if self._registered_in in (None, self._session):
            await super()._follow_registration()


class _StaleAcls(LearnedAcls):
    def acl_changed(self, pattern: ResourcePattern, entries: Entries, version: int | None) -> None:
        self._seen(pattern, entries, version)


BUGS: Final[tuple[Bug, ...]] = (
    Bug(
        name="response_before_applied",
        does="The controller ignores `bridgehead.metadata.blocking=cluster`.",
        apply=settings(_without_waiting),
        found_by="stale reads of clients",
        test="integration/test_read_after_write.py"
        "::test_controller_that_responds_too_early_is_detected",
    ),
    Bug(
        name="repeats_updates",
        does="A broker applies each change of metadata again, after later changes.",
        apply=_with_repeats,
        found_by="R2, R3",
        run=Run(scenario="reads_in_failover", found_by=("R2", "R3")),
    ),
    Bug(
        name="forgets_restarted_brokers",
        does="A broker's later channels to the controller get no metadata.",
        apply=part("controller", _ForgetsRestartedBrokers),
        found_by="no controller that every broker knows",
    ),
    Bug(
        name="registers_once",
        does="A broker that lost its session does not register in its next session.",
        apply=part("watcher", _UnregisteredWatcher),
        found_by="unknown outcomes",
    ),
    Bug(
        name="stale_acl_cache",
        does="A broker applies changes of ACLs only when it next reads all of them.",
        apply=part("learned_acls", _StaleAcls),
        found_by="the clients' results",
        test="integration/test_forwarded_principals.py::test_broker_with_stale_acls_is_detected",
    ),
)
