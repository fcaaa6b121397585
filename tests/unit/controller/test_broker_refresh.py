"""The background work of a term: it reads the live brokers again, and pushes full images."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, ClassVar, cast
from unittest.mock import AsyncMock, Mock, patch

from immutables import Map

from cluster_model.image import BrokerRegistration, MetadataImage, Topic
from cluster_model.records import NO_STATE, Record, TopicRemovalRecord
from cluster_model.session_state import ConnectionLostError
from controller.services import Settings
from controller.store.outcomes import OutcomeIndex
from controller.store.port import Fence
from controller.term.term import Term
from zookeeper_client.wire import ZnodeData


class EmptyStore:
    """A store without brokers. `refreshes` counts the reads of /brokers/ids with a watch."""

    def __init__(self) -> None:
        self.refreshes = 0
        self.during_read: Callable[[], None] = lambda: None

    def lease_holds(self) -> bool:
        return True

    async def children(self, _path: str, _watch: Callable[[], None]) -> list[str]:
        self.refreshes += 1
        return []

    async def read(self, reads: Any) -> list[Any]:
        await asyncio.sleep(0)
        self.during_read()
        return [None for _ in reads]


def a_term(
    store: EmptyStore, publisher: Mock | None = None, image: MetadataImage | None = None
) -> Term:
    """Return a term that begins with `image` and stores records."""
    image = image or MetadataImage()
    loaded = SimpleNamespace(image=image, outcomes=OutcomeIndex(), states_are_read=True, invalid=())
    services = Mock(policies=None)
    fence = Fence(epoch=1, zk_version=1, zxid=1, last_commit_zxid=0)
    settings = Settings(1, 1000, 1000, 1000, stores_records=True)
    return Term(
        settings,
        services,
        cast(Any, store),
        fence,
        cast(Any, loaded),
        publisher or Mock(publish=AsyncMock()),
    )


async def run_until_idle(term: Term) -> None:
    running = asyncio.create_task(term.loop.run())
    for _ in range(200):  # turns of the event loop, not time
        await asyncio.sleep(0)
    assert not running.done(), running
    running.cancel()


async def test_many_envelopes_of_an_unregistered_broker_cause_one_refresh() -> None:
    store = EmptyStore()
    term = a_term(store)
    for _ in range(30):
        term.brokers_changed()
    await run_until_idle(term)
    assert store.refreshes == 1


async def test_a_change_during_a_refresh_causes_another_refresh() -> None:
    store = EmptyStore()
    term = a_term(store)

    def change_once() -> None:
        store.during_read = lambda: None
        term.brokers_changed()

    store.during_read = change_once
    term.brokers_changed()
    await run_until_idle(term)
    assert store.refreshes == 2


async def test_parts_of_full_images_are_pushed_when_an_earlier_job_has_no_changes() -> None:
    """A step with changes publishes them. After a step without changes, the next job runs."""
    done: list[str] = []

    def elections() -> Iterator[list[Record]]:
        for step in ("change", "change", "nothing", "change"):
            done.append(step)
            yield [] if step == "nothing" else [TopicRemovalRecord("a")]

    def push_part() -> bool:
        done.append("part")
        return done.count("part") < 2

    term = a_term(EmptyStore(), Mock(push_part=push_part))
    with patch.object(term.loop, "commit_records", AsyncMock()):
        term.loop.start_job(elections())
        term.push_parts()
        await run_until_idle(term)
    assert done == ["change", "change", "nothing", "part", "change", "part"]


async def test_a_reload_notices_that_a_broker_has_registered_again() -> None:
    """The reload must report it: a refresh of the brokers after the reload finds no change."""
    before, after = (
        MetadataImage(brokers=Map({2: BrokerRegistration(2, epoch, ())})) for epoch in (5, 9)
    )
    publisher = Mock(publish=AsyncMock())
    term = a_term(EmptyStore(), publisher, before)
    loaded = SimpleNamespace(image=after, invalid=(), without_id=())
    with (
        patch("controller.term.term.load", AsyncMock(return_value=loaded)),
        patch.object(term, "_start_topic_jobs"),
        patch.object(term.loop._responses, "brokers_changed") as brokers_changed,
    ):
        term._reload()
        await run_until_idle(term)
    assert term._restarted == {2}
    brokers_changed.assert_called_once_with()
    (call,) = publisher.publish.call_args_list
    assert call.args[0].brokers == after.brokers


async def test_a_reload_overtakes_the_actions_that_are_queued() -> None:
    """Otherwise the loop would decide requests on the old image between these actions."""
    done: list[str] = []

    async def load(*_: Any) -> Any:
        done.append("reload")
        return SimpleNamespace(image=MetadataImage(), invalid=(), without_id=())

    async def earlier() -> None:
        done.append("earlier")

    term = a_term(EmptyStore())
    term.loop.schedule(earlier)
    with patch("controller.term.term.load", load), patch.object(term, "_start_topic_jobs"):
        term._reload()
        await run_until_idle(term)
    assert done == ["reload", "earlier"]


class TopicStore(EmptyStore):
    """Each listing of /brokers/topics takes `takes_s`; the first `failures` lose the connection."""

    def __init__(self, failures: int = 0, takes_s: float = 0.0) -> None:
        super().__init__()
        self.began_s: list[float] = []
        self._failures = failures
        self._takes_s = takes_s

    async def children(self, path: str, watch: Callable[[], None]) -> list[str]:
        assert path == "/brokers/topics"
        self.began_s.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self._takes_s)
        if len(self.began_s) <= self._failures:
            raise ConnectionLostError
        watch()  # Topics are created all the time.
        return []


async def until_listed(store: TopicStore, times: int) -> None:
    term = a_term(store)
    running = asyncio.create_task(term.loop.run())
    for _ in range(30):
        term._topics.changed()
    async with asyncio.timeout(20):
        while len(store.began_s) < times:
            assert not running.done(), running
            await asyncio.sleep(0.01)
    running.cancel()


async def test_topics_are_listed_again_after_a_lost_connection() -> None:
    await until_listed(TopicStore(failures=2), 3)


async def test_the_controller_takes_none_of_its_own_topics() -> None:
    paths: list[str] = []

    class Store(EmptyStore):
        async def children(self, _path: str, _watch: Callable[[], None]) -> list[str]:
            return ["mine", "foreign"]

        async def read(self, reads: Any) -> list[Any]:
            paths.extend(read.path for read in reads)
            return await super().read(reads)

    store = Store()
    mine = Topic("mine", b"i" * 16, ((1,),), (NO_STATE,))
    term = a_term(store, image=MetadataImage(topics=Map(mine=mine)))
    term._topics.changed()
    await run_until_idle(term)
    assert paths == ["/brokers/topics/foreign"]
    assert term.loop.image.topics["mine"] is mine


async def test_the_controllers_own_creations_cause_few_listings() -> None:
    """Long lists are read more rarely."""
    for takes_s, rest_s in ((0.0, 0.25), (0.02, 0.4)):
        store = TopicStore(takes_s=takes_s)
        await until_listed(store, 3)
        pauses = [after - before for before, after in pairwise(store.began_s)]
        assert min(pauses) >= rest_s, pauses


async def test_a_refresh_names_an_invalid_registration_until_it_is_gone() -> None:
    class OddStore(EmptyStore):
        registrations: ClassVar[dict[str, bytes]] = {
            "77": b'{"endpoints":["PLAINTEXT://h:1"],"rack":5}'
        }

        async def read(self, reads: Any) -> list[Any]:
            return [
                list(self.registrations)
                if read.path == "/brokers/ids"
                else ZnodeData(self.registrations["77"], bytes(68))
                if read.path == "/brokers/ids/77"
                else None
                for read in reads
            ]

    store = OddStore()
    term = a_term(store)
    term.brokers_changed()
    await run_until_idle(term)
    assert term.skipped.errors == ("/brokers/ids/77: a number instead of a string",)
    store.registrations.clear()
    term.brokers_changed()
    await run_until_idle(term)
    assert term.skipped.errors == ()
