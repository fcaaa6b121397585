"""Takes over the topics that others create, as Kafka's controller does.

A broker below the bridge release, or a tool, creates a topic without partition states. The active
controller watches /brokers/topics. It reads each topic that is not in its image, gives it a topic
id if it has none, and writes the states of its partitions.

It does so between two rounds of requests, when it has no write in flight. Its image then has all of
its own topics, so it never takes one of them for another's. If another program deletes or changes
the topic meanwhile, the write of the states conflicts, and the controller reads everything again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from cluster_model.records import ConfigResource
from cluster_model.session_state import ConnectionLostError
from cluster_model.topic_names import is_legal
from cluster_model.znodes.layout import ConfigZnode, TopicZnode
from cluster_model.znodes.values import shortened
from controller.loop.loop import ControllerLoop
from controller.store.load import load_topics
from controller.store.zookeeper import ZooKeeperStore
from controller.term.skipped_znodes import SkippedZnodes
from zookeeper_client.config_reading import read_some_configs

_TOPICS: Final = "/brokers/topics"
# The controller's own creations change the list, too. Reading a long list occupies the controller
# and ZooKeeper, so it should take at most half a percent of the time.
_REST_S: Final = 0.25
_REST_FACTOR: Final = 200
_REST_MAX_S: Final = 5.0


class TopicFollower:
    """Follows /brokers/topics in one term."""

    def __init__(
        self,
        loop: ControllerLoop,
        store: ZooKeeperStore,
        skipped: SkippedZnodes,
        start_jobs: Callable[[Sequence[str], Sequence[str]], None],
    ) -> None:
        """`start_jobs(names, without_id)` starts the jobs that complete these new topics."""
        self._loop = loop
        self._store = store
        self._skipped = skipped
        self._start_jobs = start_jobs
        self._is_busy = False  # true until the rest after a look is over
        self._is_outdated = False
        self._unread: Sequence[str] = ()  # the listed names that are not in the image

    def changed(self) -> None:
        """The list of topics may have changed, or its watch is gone."""
        self._is_outdated = True
        if not self._is_busy:
            self._is_busy = True
            self._loop.schedule(self._follow)

    async def _follow(self) -> None:
        clock = asyncio.get_running_loop()
        began_s, self._is_outdated = clock.time(), False
        try:
            names = await self._store.children(_TOPICS, self.changed)
            await self._take([name for name in names if name not in self._loop.image.topics])
        except ConnectionLostError:
            self._is_outdated = True
        rest_s = max(_REST_S, _REST_FACTOR * (clock.time() - began_s))
        rest_s = min(rest_s, _REST_MAX_S)
        clock.call_later(rest_s, self._rested)

    def _rested(self) -> None:
        self._is_busy = False
        if self._is_outdated:
            self.changed()

    async def _take(self, names: Sequence[str]) -> None:
        """Read the topics, and take those that are valid into the image.

        An invalid one is skipped, and read again after the next change of the list.
        """
        before = {*self._unread, *self._loop.image.unreadable}
        if not names and not before:
            return
        invalid: list[str] = []
        topics, without_id = await load_topics(self._store.read, names, invalid)
        resources = [ConfigResource("topics", name) for name in topics]
        configs = await read_some_configs(self._store.read, resources)
        paths = [TopicZnode.path(name) for name in {*names} | before]
        paths += [ConfigZnode.path(resource) for resource in resources]
        read = tuple(f"{shortened(path)}{end}" for path in paths for end in (": ", "/"))
        self._skipped.replace(read, [*invalid, *configs.invalid])
        self._unread = [name for name in names if name not in topics]
        image = self._loop.image.with_topics(topics)
        for resource in resources:
            versions = configs.versions.get(resource, 0)
            image = image.with_config(resource, configs.configs.get(resource), versions)
        image = replace(image, unreadable=frozenset(filter(is_legal, self._unread)))
        if topics:
            await self._loop.replace_topics(image, frozenset(topics))
            self._start_jobs(sorted(topics), without_id)
        else:
            self._loop.image = image
