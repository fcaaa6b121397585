"""Whatever other programs write into ZooKeeper, a simulated cluster keeps its controller.

`tests/unit/controller/test_odd_znodes.py` has more examples, without sessions, watches and jobs.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest
from bridgehead.kafka_wire.messages.metadata import MetadataRequest
from bridgehead.raw_client.asynchronous import ClusterClient
from chaos.simulated.network import NetworkLoop
from chaos.simulated.nodes import SimulatedCluster
from chaos.simulated.virtual_time import virtual_host
from chaos.simulated.zookeeper_session import SimulatedSession, ZooKeeperService
from cluster_model.znodes.operations import Create, Delete, SetData
from tests.unit.controller.odd_znodes import VALID, as_bytes, odd_trees
from zookeeper_client.wire import ReadData

BROKERS: Final = 3
ACTIVE_WITHIN_S: Final = 30.0
WATCHED_S: Final = 10.0
PROPERTIES: Final = {
    "zookeeper.session.timeout.ms": "3000",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "secret",
}
REGISTRATION: Final = VALID["/brokers/ids/77"]


class Simulation:
    """A cluster with the topic `kept`, and a session of a program that writes odd znodes."""

    def __init__(self, folder: Path) -> None:
        self.loop = NetworkLoop(1)
        self._service = ZooKeeperService(
            self.loop.network, lambda: time.time_ns() // 1_000_000, seed=1
        )
        self.cluster = SimulatedCluster(
            self.loop,
            self._service,
            data_dir=folder / "nodes",
            evidence_dir=folder / "run=1",
            brokers=BROKERS,
            properties=PROPERTIES,
            node_properties={},
            seeded_bugs=frozenset(),
        )

    def play(self, odd: Mapping[str, bytes | None]) -> dict[str, Any]:
        """Write the znodes, end the controller's session, use the cluster.

        Returns the status of the controller's node.
        """
        with virtual_host(self.loop, 1):
            return self.loop.run_until_complete(self._play(odd))

    async def _play(self, odd: Mapping[str, bytes | None]) -> dict[str, Any]:
        await self.cluster.start()
        await self._until_complete()
        addresses = {n: self.cluster.address(n) for n in self.cluster.nodes}
        client = ClusterClient(addresses, "test")
        assert await self._create(client, 1, "kept") == 0
        await self._write(odd)
        await asyncio.sleep(1)
        before = await self._until_complete()
        await self.cluster.nodes[before["id"]].expire_controller()
        while (elected := await self._until_complete())["controller_epoch"] == (
            before["controller_epoch"]
        ):
            await asyncio.sleep(0.1)
        await asyncio.sleep(WATCHED_S)
        for broker in self.cluster.nodes:
            assert await self._create(client, broker, f"new-{broker}") == 0
            listed = await client.call(broker, ApiKey.METADATA, 7, MetadataRequest(topics=None))
            topics = {topic.name: topic.error_code for topic in listed.topics}
            assert (topics.get("kept"), topics.get(f"new-{broker}")) == (0, 0)
        status = await self._until_complete()
        assert status["controller_epoch"] == elected["controller_epoch"], "elected again"
        client.close()
        await self.cluster.stop()
        return status

    async def _create(self, client: ClusterClient, broker: int, name: str) -> int:
        replicas = [CreatableReplicaAssignment(0, [1, 2])]
        request = CreateTopicsRequest([CreatableTopic(name, -1, -1, replicas)])
        response = await client.call(broker, ApiKey.CREATE_TOPICS, 4, request)
        return int(response.topics[0].error_code)

    async def _until_complete(self) -> dict[str, Any]:
        """Return the status of the controller's node."""
        deadline_s = self.loop.time() + ACTIVE_WITHIN_S
        while not self.cluster.is_complete():
            assert self.loop.time() < deadline_s, "no controller, or a broker is missing"
            await asyncio.sleep(0.05)
        node = self.cluster.nodes[self.cluster.controller() or 0].node
        assert node is not None
        return node.status()

    async def _write(self, odd: Mapping[str, bytes | None]) -> None:
        session = SimulatedSession(
            self._service, session_timeout_ms=60_000, on_state=lambda _state: None
        )
        await session.open(60)
        for path, content in odd.items():
            parts = path.split("/")[1:]
            for depth in range(1, len(parts)):
                await session.multi([session.encode(Create("/" + "/".join(parts[:depth])))])
            for operation in (Create(path, content), SetData(path, content or b"")):
                await session.multi([session.encode(operation)])
        await session.close()


def run(odd: Mapping[str, bytes | None], caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    caplog.clear()
    with tempfile.TemporaryDirectory() as folder, caplog.at_level(logging.WARNING):
        status = Simulation(Path(folder)).play(odd)
    assert "Traceback" not in caplog.text
    assert "unexpected error" not in caplog.text
    return status


def test_a_cluster_skips_odd_znodes_and_its_status_names_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    odd = {
        "/brokers/ids/77": as_bytes(REGISTRATION | {"rack": 5}),
        f"/brokers/ids/{2**40}": as_bytes(REGISTRATION),
        f"/bridgehead/outcomes/{10**22}": b"{}",
        "/bridgehead/floors/1-zy": b"9" * 5_000,
        "/kafka-acl-changes/zzz": b"Topic:odd",
    }
    skipped = run(odd, caplog)["skipped_znodes"]
    assert skipped["count"] == len(odd)
    for path in odd:
        assert any(error.startswith(f"{path}: ") for error in skipped["first"]), path
        assert f"skipping an invalid znode: {path}: " in caplog.text


def test_outcomes_that_cannot_be_deleted_end_no_term(caplog: pytest.LogCaptureFixture) -> None:
    """The controller prunes the outcomes of finished requests every second."""
    run({f"/bridgehead/outcomes/{commit:010}/foreign": b"" for commit in range(1, 9)}, caplog)
    assert "a znode stays, because another program has changed it: /bridgehead/" in caplog.text


class TakenNumbers(Simulation):
    """Another program creates outcomes with the numbers of the next commits."""

    async def _play(self, odd: Mapping[str, bytes | None]) -> dict[str, Any]:
        await self.cluster.start()
        before = await self._until_complete()
        client = ClusterClient({n: self.cluster.address(n) for n in self.cluster.nodes}, "test")
        await self._write(odd)
        codes = [await self._create(client, broker, f"t-{broker}") for broker in self.cluster.nodes]
        for move in (1, 2):  # The next controllers continue after the highest number.
            after = await self._until_complete()
            await self.cluster.nodes[after["id"]].expire_controller()
            await asyncio.sleep(1)
            codes.append(await self._create(client, 1, f"moved-{move}"))
        after = await self._until_complete()
        client.close()
        await self.cluster.stop()
        elections = after["controller_epoch"] - before["controller_epoch"]
        return {"codes": codes, "elections": elections}


@pytest.mark.parametrize("numbers", [range(20), range(100, 200), [10**10 - 1], [10**15 - 1]])
def test_writes_continue_after_another_program_took_numbers_of_commits(
    numbers: Sequence[int],
) -> None:
    with tempfile.TemporaryDirectory() as data:
        odd = {f"/bridgehead/outcomes/{number:010}": b"{}" for number in numbers}
        seen = TakenNumbers(Path(data)).play(odd)
    assert seen["codes"] == [0] * 5
    assert seen["elections"] <= 3


class LastEpoch(Simulation):
    """No controller can be elected after the last epoch. An operator repairs the znode."""

    async def _play(self, odd: Mapping[str, bytes | None]) -> dict[str, Any]:
        await self.cluster.start()
        before = await self._until_complete()
        repaired = dict.fromkeys(odd, b"%d" % before["controller_epoch"])
        await self._write(odd)
        await self.cluster.nodes[before["id"]].expire_controller()
        await asyncio.sleep(WATCHED_S)
        nodes = [node.node for node in self.cluster.nodes.values() if node.node is not None]
        problems = [node.status()["election_problem"] for node in nodes]
        began = len(self._service.model.log)
        await asyncio.sleep(WATCHED_S)
        transactions = len(self._service.model.log) - began
        await self._write(repaired)
        after = await self._until_complete()
        assert after["controller_epoch"] == before["controller_epoch"] + 1
        await self.cluster.stop()
        return {"transactions": transactions, "problems": problems}


@pytest.mark.parametrize("epoch", [b"2147483647", b"%d" % 2**40, b"9" * 5_000, b'{"a":1}'])
def test_the_last_epoch_is_named_and_no_node_claims_it(epoch: bytes) -> None:
    with tempfile.TemporaryDirectory() as data:
        seen = LastEpoch(Path(data)).play({"/controller_epoch": epoch})
    assert seen["transactions"] <= 30  # each attempt opens and closes a session
    for problem in seen["problems"]:
        assert "/controller_epoch" in problem
        assert "write a number from 0 to 2147483646" in problem


class Wiped(Simulation):
    """Somebody deletes all znodes, for example the chroot of this cluster."""

    async def _play(self, odd: Mapping[str, bytes | None]) -> dict[str, Any]:
        await self.cluster.start()
        await self._until_complete()
        await self._delete_all()
        began = len(self._service.model.log)
        await asyncio.sleep(60)
        nodes = [node.node for node in self.cluster.nodes.values() if node.node is not None]
        problems = [node.status()["election_problem"] for node in nodes]
        epoch = self._service.model.read([ReadData("/controller_epoch")])
        transactions = len(self._service.model.log) - began
        await self.cluster.stop()
        return {"epoch": epoch, "transactions": transactions, "problems": problems}

    async def _delete_all(self, *folders: str) -> None:
        """Delete everything, or everything in some folders, in one transaction.

        One by one, brokers could register again between two deletions, and topics would disappear
        before their folder does.
        """
        session = SimulatedSession(
            self._service, session_timeout_ms=60_000, on_state=lambda _state: None
        )
        await session.open(60)
        paths = sorted(self._service.model.paths(), key=lambda path: -path.count("/"))
        gone = [
            session.encode(Delete(path))
            for path in paths
            if not folders or f"{path}/".startswith(tuple(f"{folder}/" for folder in folders))
        ]
        assert (await session.multi(gone)).failed_index is None
        await session.close()


def test_no_node_claims_an_empty_zookeeper_and_the_problem_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A controller without topics would make brokers delete their logs."""
    caplog.clear()
    with tempfile.TemporaryDirectory() as data:
        seen = Wiped(Path(data)).play({})
    assert seen["epoch"] == [None], "a controller was elected"
    assert seen["transactions"] < 200
    assert all("restore its data" in problem for problem in seen["problems"])
    assert "Traceback" not in caplog.text


class WithoutFolder(Wiped):
    """Somebody deletes a folder, with everything below it."""

    async def _play(self, odd: Mapping[str, bytes | None]) -> dict[str, Any]:
        await self.cluster.start()
        client = ClusterClient({n: self.cluster.address(n) for n in self.cluster.nodes}, "test")
        while await self._create(client, 1, "kept") != 0:
            await asyncio.sleep(0.1)
        before = await self._until_complete()
        await self._delete_all(*odd)
        await self.cluster.nodes[before["id"]].expire_controller()
        await asyncio.sleep(5)
        began = len(self._service.model.log)
        await asyncio.sleep(60)
        states = [node.node.status() for node in self.cluster.nodes.values() if node.node]
        client.close()
        await self.cluster.stop()
        transactions = len(self._service.model.log) - began
        return {"states": states, "transactions": transactions, "before": before}


@pytest.mark.parametrize("folder", ["/brokers", "/brokers/topics", "/bridgehead/outcomes"])
def test_no_node_claims_a_zookeeper_without_an_essential_folder(
    folder: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    with tempfile.TemporaryDirectory() as data:
        seen = WithoutFolder(Path(data)).play({folder: None})
    for state in seen["states"]:
        assert state["topics"] == 1, "a broker was told that the topic is gone"
        assert f"{folder}" in state["election_problem"]
        assert "restore its data" in state["election_problem"]
    assert seen["transactions"] < 200, "nodes try again and again without a pause"
    assert len(caplog.text) < 20_000
    assert "Traceback" not in caplog.text


class Joined(Wiped):
    """Somebody deletes all znodes; then a broker that has no logs starts there."""

    async def _play(self, odd: Mapping[str, bytes | None]) -> dict[str, Any]:
        late = self.cluster.nodes.pop(BROKERS)
        await self.cluster.start()
        client = ClusterClient({n: self.cluster.address(n) for n in self.cluster.nodes}, "test")
        while await self._create(client, 1, "kept") != 0:
            await asyncio.sleep(0.1)
        await self._delete_all()
        await asyncio.sleep(1)
        await late.start()
        self.cluster.nodes[late.id] = late
        await asyncio.sleep(WATCHED_S)
        states = [node.node.status() for node in self.cluster.nodes.values() if node.node]
        client.close()
        await self.cluster.stop()
        return {"states": states}


def test_brokers_do_not_follow_a_controller_of_another_cluster(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its metadata have no topics, so the brokers would delete their logs."""
    caplog.clear()
    with tempfile.TemporaryDirectory() as data:
        first, second, other = Joined(Path(data)).play({})["states"]
    assert other["is_controller"]
    assert (other["topics"], other["brokers"]) == (0, [BROKERS])
    assert first["cluster_id"] == second["cluster_id"] != other["cluster_id"]
    for state in (first, second):
        assert (state["topics"], state["controller_id"]) == (1, None)
        assert f"/cluster/id names the cluster {other['cluster_id']}" in state["election_problem"]
    assert caplog.text.count(f"but this broker belongs to {first['cluster_id']}") == 2
    assert "Traceback" not in caplog.text


class Deletion(Simulation):
    """A topic is deleted while a znode of another program is below one of its znodes."""

    async def _play(self, odd: Mapping[str, bytes | None]) -> dict[str, Any]:
        await self.cluster.start()
        await self._until_complete()
        client = ClusterClient({n: self.cluster.address(n) for n in self.cluster.nodes}, "test")
        assert await self._create(client, 1, "gone") == 0
        await self._write(odd)
        before = len(self._service.model.log)
        request = DeleteTopicsRequest(topic_names=["gone"], timeout_ms=1_000)
        response = await client.call(2, ApiKey.DELETE_TOPICS, 4, request)
        assert response.responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        await asyncio.sleep(WATCHED_S)
        status = await self._until_complete()
        status["transactions"] = len(self._service.model.log) - before
        client.close()
        await self.cluster.stop()
        return status


FOLDERS = ("brokers/topics/gone", "config/topics/gone", "brokers/topics/gone/partitions/0")


@pytest.mark.parametrize("folder", [*FOLDERS, "admin/delete_topics/gone"])
def test_a_topic_that_cannot_be_deleted_does_not_keep_the_controller_busy(
    folder: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    with tempfile.TemporaryDirectory() as data:
        status = Deletion(Path(data)).play({f"/{folder}/foreign": b""})
    assert status["transactions"] < 20
    assert f"/{folder} failed with ZooKeeper's error -111" in caplog.text


@settings(
    max_examples=20,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(odd=odd_trees())
def test_a_cluster_keeps_its_controller_whatever_the_znodes_contain(
    odd: dict[str, bytes | None], caplog: pytest.LogCaptureFixture
) -> None:
    run(odd, caplog)
