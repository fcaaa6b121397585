"""How an ensemble is read: all of Kafka's znodes, none of others, and again if writes happen.

`tests/integration/test_rehearse_scan.py` reads a real ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cluster_model.session_state import ConnectionLostError, ZooKeeperRejectedError
from cluster_model.znodes.access import OPEN, ZnodeAcl
from rehearse.sources import ensemble
from rehearse.sources.ensemble import read_ensemble
from rehearse.znodes import Hidden, SourceError, Znode
from zookeeper_client.wire import Read, ReadData, ReadDenied, Stat, ZnodeData

SASL = (ZnodeAcl(31, "sasl", "kafka"),)
DATA = {
    "/brokers": None,
    "/brokers/ids": b"",
    "/brokers/ids/1": b"{}",
    "/brokers/topics": None,
    "/config": None,
    "/config/users": None,
    "/config/users/alice": b"secret",
    "/controller_epoch": b"7",
    "/zookeeper": None,
    "/zookeeper/quota": None,
    "/other": b"of another program",
}


class FakeSession:
    """Has the znodes of DATA; writes happen during the first `writes` readings."""

    def __init__(self, connect: str, **_options: Any) -> None:
        self.connect = connect
        self.last_zxid = 100
        self.is_closed = False
        self.readings = 0
        SESSIONS.append(self)

    async def open(self, _timeout_s: float) -> None:
        if FAILURE is not None:
            raise FAILURE

    async def close(self) -> None:
        self.is_closed = True

    async def sync(self) -> None:
        self.readings += 1
        if self.readings <= WRITES:
            self.last_zxid += 1

    async def exists(self, _path: str) -> Stat | None:
        return None if self.connect.endswith("/missing") else Stat(*[0] * 11)

    async def children(self, _path: str) -> list[str]:
        self.last_zxid += self.readings <= WRITES
        return []

    async def read_allowed(self, reads: Sequence[Read]) -> list[Any]:
        if BREAKS is not None:
            raise BREAKS
        return [self._one(read) for read in reads]

    def _one(self, read: Read) -> Any:
        if read.path not in DATA:
            return None
        if read.path == DENIED:
            return ReadDenied()
        if isinstance(read, ReadData):
            owner = 5 if read.path.startswith("/brokers/ids/") else 0
            stat = Stat(1, 2, 3, 4, 6, 7, 8, owner, 9, 10, 11)
            return ZnodeData(DATA[read.path], stat.pack())
        depth = read.path.count("/") + 1
        below = [path for path in DATA if path.startswith(f"{read.path}/")]
        return [path.rpartition("/")[2] for path in below if path.count("/") == depth]

    async def acl(self, path: str) -> tuple[ZnodeAcl, ...] | None:
        return SASL if path == "/config" else OPEN


SESSIONS: list[FakeSession] = []
FAILURE: Exception | None = None
BREAKS: Exception | None = None
WRITES = 0
DENIED = ""


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    SESSIONS.clear()
    monkeypatch.setattr(ensemble, "ZooKeeperSession", FakeSession)


async def test_only_kafkas_znodes_are_read() -> None:
    tree = await read_ensemble("127.0.0.1:2181/kafka/")
    assert set(tree.znodes) == {path for path in DATA if not path.startswith(("/z", "/other"))}
    assert tree.znodes["/brokers/ids/1"] == Znode(b"{}", 6, ephemeral=True, acls=OPEN)
    assert tree.znodes["/config"] == Znode(None, 6, acls=SASL)
    assert (tree.zxid, tree.is_one_state) == (100, True)
    (session,) = SESSIONS
    assert (session.connect, session.readings, session.is_closed) == (
        "127.0.0.1:2181/kafka",
        1,
        True,
    )


async def test_below_a_denied_znode_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.DENIED", "/config/users")
    tree = await read_ensemble("127.0.0.1:2181")
    assert tree.znodes["/config/users"] == Znode(acls=OPEN, hidden=Hidden.NO_AUTH)
    assert "/config/users/alice" not in tree


@pytest.mark.parametrize(("writes", "readings", "is_one_state"), [(2, 3, True), (9, 3, False)])
async def test_tree_is_read_again_if_writes_happen(
    monkeypatch: pytest.MonkeyPatch, writes: int, readings: int, is_one_state: bool
) -> None:
    monkeypatch.setattr(f"{__name__}.WRITES", writes)
    tree = await read_ensemble("127.0.0.1:2181")
    assert (SESSIONS[0].readings, tree.is_one_state) == (readings, is_one_state)
    assert "/brokers/topics" in tree


async def test_missing_chroot_is_an_error() -> None:
    with pytest.raises(SourceError, match="there is no /missing in this ZooKeeper"):
        await read_ensemble("127.0.0.1:2181/missing")
    assert SESSIONS[0].is_closed


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("FAILURE", ConnectionLostError("no ZooKeeper answered"), "h:1: no ZooKeeper answered."),
        ("BREAKS", ConnectionLostError("it broke"), "h:1: it broke."),
        ("BREAKS", ZooKeeperRejectedError("Unimplemented"), "before 3.6 cannot be read so: use"),
        ("BREAKS", ValueError("MultiRead returned error -7"), "h:1: MultiRead returned error"),
    ],
)
async def test_lost_connection_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, name: str, error: Exception, text: str
) -> None:
    monkeypatch.setattr(f"{__name__}.{name}", error)
    with pytest.raises(SourceError, match=text):
        await read_ensemble("h:1")


async def test_more_znodes_than_any_cluster_has_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ensemble, "ZNODES_MAX", 5)
    with pytest.raises(SourceError, match="more than 5 znodes"):
        await read_ensemble("h:1")
