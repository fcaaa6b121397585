"""Which brokers are impersonated, and with which properties."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import orjson
import pytest

from bridgehead.cluster.data_directory import read_json
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.ports import Ports
from rehearse.links import Link
from rehearse.participants import BrokerPlan, Participants, cluster_id_of, plan_brokers
from rehearse.rollback import _epoch, _state_epochs
from rehearse.seeds import healthy
from rehearse.znodes import Znode, ZnodeTree


@pytest.fixture
def participants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Participants:
    """Return the plan of a cluster; no process is started, so jars and Java need not exist."""
    monkeypatch.setattr("rehearse.participants.find_jars", lambda _: tmp_path)
    monkeypatch.setattr("rehearse.participants.find_kafkas_java", lambda: Path("java"))
    return Participants.create(
        tmp_path / "out", _tree(), kafka="3.9.2", level="3.8", controllers=3, broker_ids=()
    )


def _tree(**znodes: Znode) -> ZnodeTree:
    registration = {
        "endpoints": ["INSIDE://10.0.0.7:9092", "OUTSIDE://example.org:9093"],
        "rack": "east",
    }
    kept = {p: z for p, z in healthy().znodes.items() if not p.startswith("/brokers/ids/")}
    kept |= {
        f"/brokers/ids/{n}": Znode(orjson.dumps(registration), ephemeral=True) for n in (7, 3000)
    }
    return ZnodeTree({**kept, **znodes})


def test_registered_brokers_keep_ids_racks_and_listeners() -> None:
    expected = [BrokerPlan(n, "east", ("INSIDE", "OUTSIDE")) for n in (7, 3000)]
    assert list(plan_brokers(_tree())) == expected
    assert [broker.id for broker in plan_brokers(_tree(), (5, 4))] == [5, 4]


def test_brokers_of_a_stopped_cluster_are_those_with_replicas() -> None:
    znodes = {p: z for p, z in healthy().znodes.items() if not p.startswith("/brokers/ids/")}
    assert [broker.id for broker in plan_brokers(ZnodeTree(znodes))] == [1, 2, 3]
    with pytest.raises(ClusterError, match="--brokers 1,2,3"):
        plan_brokers(ZnodeTree({}))


def test_source_without_a_cluster_is_named() -> None:
    with pytest.raises(ClusterError, match="chroot"):
        cluster_id_of(ZnodeTree({"/cluster/id": Znode(b"{")}))


def test_controllers_get_ids_that_no_broker_has(participants: Participants) -> None:
    assert participants.plan.controllers == (3001, 3002, 3003)
    assert participants.voters().startswith("3001@127.0.0.1:")


def test_only_migrating_controllers_know_zookeeper(participants: Participants) -> None:
    migrating = participants.controller_properties(3002, migrating=True)
    assert migrating["zookeeper.metadata.migration.enable"] == "true"
    assert migrating["inter.broker.listener.name"] == "INSIDE"
    final = participants.controller_properties(3002, migrating=False)
    assert not any("zookeeper" in name for name in final)


def test_everything_listens_on_loopback(participants: Participants) -> None:
    nodes = [node.plan.properties for node in participants.nodes.values()]
    brokers = [participants.broker_properties(n) for n in participants.brokers]
    controllers = [
        participants.controller_properties(n, migrating=True) for n in participants.controllers
    ]
    for properties in (*nodes, *brokers, *controllers):
        for listener in properties["listeners"].split(","):
            assert "://127.0.0.1:" in listener


def test_plan_is_opened_again_and_shows_no_secret(participants: Participants) -> None:
    plan = participants.plan
    assert Participants.open(participants.folder).plan == plan
    assert plan.token_secret not in repr(plan)
    assert plan.load_password not in repr(plan)
    file = participants.folder / "rehearsal.json"
    assert file.stat().st_mode & 0o077 == 0
    assert participants.folder.stat().st_mode & 0o077 == 0
    assert read_json(file) == orjson.loads(orjson.dumps(dataclasses.asdict(plan)))


def test_other_folder_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(ClusterError, match="is not empty"):
        Participants.create(
            tmp_path, _tree(), kafka="3.9.1", level="3.9", controllers=1, broker_ids=()
        )
    assert (tmp_path / "precious").exists()


def test_epochs_of_states_are_compared_with_the_controllers() -> None:
    tree = _tree(
        **{
            "/brokers/topics/orders/partitions/1/state": Znode(b'{"controller_epoch":41}'),
            "/brokers/topics/orders/partitions/0/state": Znode(b"damaged"),
            "/controller_epoch": Znode(b"40"),
        }
    )
    assert (max(_state_epochs(tree)), _epoch(tree)) == (41, 40)
    with pytest.raises(ClusterError, match="no broker can become controller"):
        _epoch(_tree(**{"/controller_epoch": Znode(b"x")}))


def test_relays_are_between_the_first_broker_the_controllers_and_zookeeper(
    participants: Participants,
) -> None:
    """Only they can be cut; a second start of the rehearsal has none."""
    plan = participants.plan
    cut = Participants(participants.folder, plan, with_links=True)
    for number in plan.controllers:
        for participant in ("controller", "zookeeper"):
            assert cut.links(participant, number)
        port = plan.ports[f"{number} to ZooKeeper"]
        properties = cut.controller_properties(number, migrating=True)
        assert properties["zookeeper.connect"] == f"127.0.0.1:{port}"
        direct = participants.controller_properties(number, migrating=True)
        assert direct["zookeeper.connect"] == participants.connect
        voter = f"{number}@127.0.0.1:{plan.ports[f'7 to {number}']}"
        voters = [cut.broker_properties(n)["controller.quorum.voters"] for n in (7, 3000)]
        assert [voter in text for text in voters] == [True, False]
        assert voter not in direct["controller.quorum.voters"]
    assert len(cut.links("broker", 0)) == len(plan.controllers)
    assert len(cut.links("controller", plan.controllers[0])) == 1


async def test_link_holds_bytes_back_while_it_is_cut() -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data.upper())
        writer.close()

    with Ports() as ports:
        server = await asyncio.start_server(shout, "127.0.0.1", port := ports.choose())
        link = Link(ports.choose(), port)
        await link.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
        writer.write(b"one")
        assert await reader.read(100) == b"ONE"
        link.cut()
        writer.write(b"two")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(100), 0.3)
        link.mend()
        assert await reader.read(100) == b"TWO"
        writer.write_eof()
        assert await reader.read(100) == b""  # the other end has closed, so this one is, too
        link.stop()
        server.close()
