"""A broker has one fetcher for each leader that it follows, and looks only at changed replicas."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from data_plane.log.checkpoints import LogName
from data_plane.replication import fetchers
from data_plane.replication.fetchers import ReplicaFetchers

OWN = 1


class Roles:
    """The replicas of a broker. `changed`: replicas with a change that no fetcher has seen."""

    broker_id = OWN

    def __init__(self) -> None:
        self.by_name: dict[LogName, Any] = {}
        self.changed: set[LogName] = set()

    def take_changed(self) -> set[LogName]:
        changed, self.changed = self.changed, set()
        return changed

    def lead(self, topic: str, leader: int | None, epoch: int = 0) -> None:
        """Set the leader of partition 0 of a topic; None deletes the topic."""
        name = (topic, 0)
        self.changed.add(name)
        if leader is None:
            del self.by_name[name]
        else:
            self.by_name[name] = SimpleNamespace(leader=leader, leader_epoch=epoch)


async def _waits(_fetcher: object) -> None:
    await asyncio.Event().wait()


async def test_fetchers_follow_the_leaders_of_changed_replicas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetchers._LeaderFetcher, "_run", _waits)
    roles, unused = Roles(), cast(Any, None)
    following = ReplicaFetchers(
        cast(Any, roles),
        address_of=unused,
        security=unused,
        limits=cast(Any, SimpleNamespace(wait_max_ms=0)),
        socket_timeout_ms=0,
        broker_epoch=unused,
    )

    def followed() -> dict[int, set[str]]:
        following.roles_changed()
        return {
            leader: {topic for topic, _ in fetcher.fetching._followed}
            for leader, fetcher in following._fetchers.items()
        }

    for topic, leader in (("a", 2), ("b", 3), ("c", OWN), ("d", -1)):
        roles.lead(topic, leader)
    assert followed() == {2: {"a"}, 3: {"b"}}
    stopped = following._fetchers[2].task
    roles.lead("a", 3, epoch=1)
    assert followed() == {3: {"a", "b"}}
    await asyncio.wait((stopped,), timeout=10)
    assert stopped.cancelled()
    roles.lead("b", None)
    roles.lead("c", 2, epoch=1)
    assert followed() == {3: {"a"}, 2: {"c"}}
    roles.lead("a", OWN, epoch=2)
    roles.lead("c", -1, epoch=2)
    assert followed() == {}
    roles.lead("a", 2, epoch=3)
    assert followed() == {2: {"a"}}
    await following.stop()
    roles.lead("a", 3, epoch=4)  # A broker that leaves is no longer a caught-up follower.
    assert followed() == {}
    await following.stop()
