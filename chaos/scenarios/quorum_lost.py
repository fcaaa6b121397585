"""No write is acknowledged without a quorum; writes succeed again when the quorum is back."""

from __future__ import annotations

from chaos.faults.pause_quorum import PAUSE_QUORUM
from chaos.scenario import Catch, Expectation, Scenario, Sessions, Step, Topology
from chaos.workloads.topics import TOPICS

QUORUM_LOST = Scenario(
    name="quorum_lost",
    aim="No write is acknowledged without a quorum; writes succeed again when the quorum is back.",
    bug="D1: an acknowledgement without a commit",
    catches=Catch(bugs=("assumes_commit",), found_by=("K4",)),
    workload=TOPICS,
    topology=Topology(zookeeper_members=3),
    steps=(Step(fault=PAUSE_QUORUM, hold=Sessions(2)),),
    expects=Expectation(elections=(0, 2)),
    not_simulated="the simulated ZooKeeper has one member",
)
