"""The waits of a rehearsal, with scripted processes: what counts as going on, waiting, or dying."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.cluster.errors import ClusterError
from rehearse.faults import Fault
from rehearse.findings import Outcome
from rehearse.phases import DriverState, LogLine
from rehearse.rehearsal import BlockedError, Rehearsal

_STATES = [state.value for state in DriverState]


@dataclass
class _Controller:
    """A controller that logs one list of messages at each call."""

    id: int
    script: list[list[str]]
    ends: bool = False
    output: str = ""
    said: list[str] = field(default_factory=list)
    pid: int | None = None
    calls: list[str] = field(default_factory=list)

    def kill(self) -> None:
        self.calls.append("kill")

    def freeze(self) -> None:
        self.calls.append("freeze")

    def thaw(self) -> None:
        self.calls.append("thaw")

    def log_lines(self) -> list[LogLine]:
        messages = self.script.pop(0) if self.script else []
        self.said += messages
        return [LogLine(float(len(self.said)), "INFO", message) for message in messages]

    def has_ended(self) -> bool:
        return self.ends and not self.script

    def last_output(self) -> str:
        return self.output

    def measure(self) -> None:
        """Has no memory to measure."""


class _Participants:
    def __init__(self, *controllers: _Controller) -> None:
        self.controllers = {controller.id: controller for controller in controllers}
        self.connect = "127.0.0.1:1"
        self.nodes: dict[int, Any] = {}
        self.brokers: dict[int, Any] = {}

    def measure(self) -> None:
        """Has no memory to measure."""


def _rehearsal(*controllers: _Controller, patience_s: float = 0.2) -> tuple[Rehearsal, list[str]]:
    said: list[str] = []
    participants: Any = _Participants(*controllers)
    return Rehearsal(participants, said.append, patience_s=patience_s), said


def _enters(*states: str) -> list[list[str]]:
    return [[f"3000 transitioning from X to {state} state"] for state in states]


async def test_dual_write_is_reached_and_each_state_is_announced() -> None:
    rehearsal, said = _rehearsal(_Controller(3000, _enters(*_STATES[1:])))
    announced: list[str] = []

    async def at(state: str) -> None:
        announced.append(state)

    await rehearsal.until_dual_write(at)
    assert announced == _STATES[1:]
    assert said == _STATES[1:]


async def test_states_of_an_ended_controller_are_announced_when_it_enters_them_again() -> None:
    """Two states may be read at once. A fault at the first ends the process."""
    both = ["3000 transitioning from X to INACTIVE state"]
    both += ["3000 transitioning from X to WAIT_FOR_BROKERS state"]
    rehearsal, _ = _rehearsal(_Controller(3000, [both, [], *_enters(*_STATES[1:])]))
    announced: list[str] = []

    async def at(state: str) -> None:
        announced.append(state)
        if state == "INACTIVE":
            rehearsal.progress[3000].restarted()

    await rehearsal.until_dual_write(at)
    assert announced == _STATES[1:]


@pytest.mark.parametrize(
    ("offset", "left"),
    [
        (41, "ZK_MIGRATION, /controller of 3000, and KRaft has the metadata"),
        (-1, "ZK_MIGRATION, /controller of 3000, and KRaft has not the metadata"),
    ],
)
async def test_fault_says_what_it_hit_and_left(
    offset: int, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read_object(_connect: str, path: str) -> dict[str, Any]:
        return {"/controller": {"brokerid": 3000}}.get(path, {"kraft_metadata_offset": offset})

    monkeypatch.setattr("rehearse.rehearsal.read_object", read_object)
    monkeypatch.setattr("rehearse.rehearsal._GONE_S", 0.0)
    controller = _Controller(3000, _enters("ZK_MIGRATION"))
    rehearsal, _ = _rehearsal(controller)
    result = await rehearsal.inject(Fault("ZK_MIGRATION", "freeze", "controller"))
    assert (result.fault, result.hit, result.left) == (
        "ZK_MIGRATION:freeze-controller",
        "ZK_MIGRATION",
        left,
    )
    assert controller.calls == ["freeze", "thaw"]


async def test_controller_whose_jvm_starts_slowly_does_not_wait() -> None:
    slow: list[list[str]] = [[] for _ in range(40)]  # a read every 20 ms: four times the patience
    rehearsal, said = _rehearsal(_Controller(3000, [*slow, *_enters(*_STATES[1:])]))
    await rehearsal.until_dual_write()
    assert said[-1] == "DUAL_WRITE"


async def test_same_wait_for_longer_than_patience_is_for_ever() -> None:
    wait = "Still waiting for ZK brokers [9] found in metadata to register with KRaft."
    rehearsal, _ = _rehearsal(_Controller(3000, [*_enters("WAIT_FOR_BROKERS"), [wait]]))
    with pytest.raises(BlockedError) as blocked:
        await rehearsal.until_dual_write()
    assert blocked.value.outcome is Outcome.WAITS
    assert blocked.value.why == wait


async def test_wait_after_the_claim_is_stuck() -> None:
    claim = "KRaft controller 3000 creating /controller to be it with ZK epoch 9. Nobody was."
    fault = "Encountered ZooKeeper error during event SyncKRaftMetadataEvent. Will retry."
    script = [
        *_enters("BECOME_CONTROLLER"),
        [claim],
        *_enters("SYNC_KRAFT_TO_ZK"),
        [fault],
        [fault],
    ]
    rehearsal, said = _rehearsal(_Controller(3000, script))
    with pytest.raises(BlockedError) as blocked:
        await rehearsal.until_dual_write()
    assert blocked.value.outcome is Outcome.STUCK
    assert sum("SyncKRaftMetadataEvent" in sentence for sentence in said) == 1


async def test_controller_that_ends_dies_with_kafkas_reason() -> None:
    fatal = "Encountered fatal fault: Aborting the ZK migration"
    script = [*_enters("ZK_MIGRATION"), [fatal]]
    rehearsal, _ = _rehearsal(_Controller(3000, script, ends=True))
    with pytest.raises(BlockedError, match="dies: Aborting the ZK migration") as blocked:
        await rehearsal.until_dual_write()
    assert blocked.value.outcome is Outcome.DIES


async def test_controller_that_cannot_start_says_why() -> None:
    rehearsal, _ = _rehearsal(_Controller(3000, [], ends=True, output="java.net.BindException"))
    with pytest.raises(BlockedError, match=r"java\.net\.BindException"):
        await rehearsal.until_dual_write()


async def test_one_of_three_controllers_may_end() -> None:
    quorum = [
        _Controller(3000, [], ends=True),
        _Controller(3001, _enters(*_STATES[1:])),
        _Controller(3002, []),
    ]
    rehearsal, said = _rehearsal(*quorum)
    await rehearsal.until_dual_write()
    assert said[-1] == "[3001] DUAL_WRITE"
    majority, _ = _rehearsal(quorum[0], _Controller(3001, [], ends=True), quorum[2])
    with pytest.raises(BlockedError):
        await majority.until_dual_write()


class _Swapped:
    """One of our nodes, or Kafka's broker in its place. The calls go into a common list."""

    condition = "stopped"

    def __init__(self, number: int, name: str, calls: list[str]) -> None:
        self.id, self._name, self._calls = number, name, calls

    def request_stop(self) -> None:
        self._calls.append(f"{self._name} leaves")

    def is_running(self) -> bool:
        return False

    def stop(self) -> None:
        """Has stopped already."""

    def has_ended(self) -> bool:
        return False

    def log_lines(self) -> list[LogLine]:
        return [LogLine(1.0, "INFO", "[KafkaRaftServer] Kafka Server started")]


def _swap(missing: list[dict[str, list[int]]]) -> tuple[Rehearsal, list[str], list[str]]:
    """Return a rehearsal of brokers 4 and 5 whose log lacks `missing` at each look; the calls."""
    rehearsal, said = _rehearsal(_Controller(3000, []))
    calls: list[str] = []
    participants: Any = rehearsal.participants
    participants.nodes = {n: _Swapped(n, f"node {n}", calls) for n in (4, 5)}
    participants.brokers = {n: _Swapped(n, f"broker {n}", calls) for n in (4, 5)}
    participants.start_broker = lambda number: calls.append(f"broker {number} starts")

    def out_of_sync(topics: list[str]) -> dict[str, list[int]]:
        look = missing.pop(0) if len(missing) > 1 else missing[0]
        calls.append(f"{' '.join(topics)}: {len(look)} lag")
        return look

    metadata: Any = SimpleNamespace(out_of_sync=out_of_sync)
    rehearsal.metadata = lambda until=None: metadata  # type: ignore[method-assign]
    return rehearsal, said, calls


async def test_next_node_leaves_only_when_all_replicas_are_in_sync() -> None:
    lag = {"a-0": [4], "a-1": [4]}
    rehearsal, _, calls = _swap([{}, lag, lag, {}, {"a-0": [5]}, {}])
    await rehearsal.to_kraft_brokers(["a", "b"])
    assert calls == [
        "a b: 0 lag",
        *("node 4 leaves", "broker 4 starts", "a b: 2 lag", "a b: 2 lag", "a b: 0 lag"),
        *("node 5 leaves", "broker 5 starts", "a b: 1 lag", "a b: 0 lag"),
    ]
    rehearsal, _, calls = _swap([lag])
    await rehearsal.to_kraft_brokers()
    assert calls == ["node 4 leaves", "broker 4 starts", "node 5 leaves", "broker 5 starts"]


async def test_replicas_that_stay_out_of_sync_end_the_rehearsal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rehearse.rehearsal._IN_SYNC_S", 0.3)
    rehearsal, _, calls = _swap([{}, {"a-0": [4, 7], "b-1": [4]}])
    with pytest.raises(ClusterError, match=r"a full ISR .* within 0 s: 2 lack broker 4, 7\."):
        await rehearsal.to_kraft_brokers(["a", "b"])
    assert "node 5 leaves" not in calls


async def test_wait_is_bounded_and_names_its_reason() -> None:
    rehearsal, _ = _rehearsal(_Controller(3000, []))

    async def never() -> bool:
        return False

    async with asyncio.timeout(10):
        with pytest.raises(ClusterError, match=r"a cat did not happen within 0 s: it sleeps\."):
            await rehearsal.wait("a cat", never, 0.3, lambda: "it sleeps")
