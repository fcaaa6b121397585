"""A broker is registered exactly once after it lost a reply, its session or its registration."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from kazoo.client import KazooClient

from broker_proxy.metadata.session import Callbacks, ZooKeeperWatcher
from cluster_model.image import BrokerRegistration, Endpoint
from cluster_model.znodes.layout import NodeAddress
from event_log.events import BrokerRegistered, Event, SessionOpened
from tests.integration.broker_peers import until
from tests.integration.conftest import ZooKeeperForTest
from tests.integration.store_peers import ReplyLosingProxy, new_store

BROKER = "/brokers/ids/7"
NODE = "/bridgehead/nodes/7"
SESSION_TIMEOUT_MS = 1000
ENDPOINT = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092)


class Broker:
    """A watcher behind a proxy. The epochs and events that the watcher reports are recorded."""

    def __init__(self, connect: str, proxy: ReplyLosingProxy) -> None:
        self.proxy = proxy
        self.epochs: list[int] = []
        self.events: list[Event] = []
        self.watcher = ZooKeeperWatcher(
            connect,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            connection_timeout_ms=10_000,
            callbacks=Callbacks(
                controller_changed=lambda _controller: None,
                config_changed=lambda _resource, _configs: None,
                users_read=lambda _users: None,
                ips_read=lambda _ips: None,
                registered=self.epochs.append,
                session_changed=lambda _state: None,
            ),
            log=self,
            now_ms=lambda: int(time.time() * 1000),
        )

    def append(self, event: Event) -> None:
        self.events.append(event)

    def flush(self) -> None:
        """Nothing is buffered."""

    def count(self, kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in self.events)


@pytest.fixture
async def broker(zookeeper: ZooKeeperForTest) -> AsyncIterator[Broker]:
    """A broker that is registered with id 7."""
    store = new_store(zookeeper.connect)
    await store.open(10)
    await store.ensure_start_up_paths("a cluster")
    await store.close()
    proxy = ReplyLosingProxy(zookeeper.hosts)
    broker = Broker(await proxy.start() + zookeeper.chroot, proxy)
    await broker.watcher.open()
    registration = BrokerRegistration(7, -1, (ENDPOINT,), None)
    await broker.watcher.register(registration, NodeAddress("127.0.0.1:1", "inc"))
    await broker.watcher.watch()
    try:
        yield broker
    finally:
        await broker.watcher.close()
        await proxy.stop()


@pytest.fixture
def truth(zookeeper: ZooKeeperForTest) -> KazooClient:
    client = KazooClient(hosts=zookeeper.connect)
    client.start()
    yield client
    client.stop()
    client.close()


def epoch_of(truth: KazooClient) -> int | None:
    stat = truth.exists(BROKER)
    return None if stat is None else int(stat.czxid)


async def test_a_registration_with_a_lost_reply_is_reported(
    broker: Broker, truth: KazooClient
) -> None:
    first = broker.epochs[0]
    broker.proxy.armed = True  # The next multi is the registration.
    await broker.watcher.expire()
    await until(lambda: len(broker.epochs) == 2)
    assert broker.proxy.lost == 1
    assert broker.epochs == [first, await asyncio.to_thread(epoch_of, truth)]
    assert broker.count(BrokerRegistered) == 2


@pytest.mark.long
async def test_a_rejected_registration_is_tried_again_in_the_same_session(
    broker: Broker, truth: KazooClient, caplog: pytest.LogCaptureFixture
) -> None:
    def take() -> None:
        while truth.exists(BROKER):
            time.sleep(0.001)
        truth.create(BROKER, b"{}", ephemeral=True)

    taken = asyncio.create_task(asyncio.to_thread(take))
    await broker.watcher.expire()
    await taken
    await until(lambda: caplog.text.count("registered by another process") == 1)
    assert len(broker.epochs) == 1
    await asyncio.to_thread(truth.delete, BROKER)
    await until(lambda: len(broker.epochs) == 2)
    assert broker.count(SessionOpened) == 2


async def test_a_deleted_registration_is_written_again(broker: Broker, truth: KazooClient) -> None:
    await asyncio.to_thread(truth.delete, BROKER)
    await until(lambda: len(broker.epochs) == 2)
    await asyncio.to_thread(truth.delete, NODE)
    async with asyncio.timeout(60):
        while await asyncio.to_thread(truth.exists, NODE) is None:
            await asyncio.sleep(0.005)
    assert len(broker.epochs) == 2
    await asyncio.to_thread(truth.set, BROKER, b"{")
    await until(lambda: len(broker.epochs) == 3)
    assert broker.epochs[-1] == await asyncio.to_thread(epoch_of, truth)
    assert broker.count(SessionOpened) == 1
