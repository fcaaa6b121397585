"""When a paused leader of ZooKeeper resumes, only uncommitted writes are dropped."""

from __future__ import annotations

from chaos.faults.pause_zookeeper_leader import PAUSE_ZOOKEEPER_LEADER
from chaos.scenario import Acknowledged, Catch, Expectation, Scenario, Step, Topology
from chaos.workloads.topics import TOPICS

ZOOKEEPER_LEADER_PAUSED = Scenario(
    name="zookeeper_leader_paused",
    aim="When a paused leader of ZooKeeper resumes, only uncommitted writes are dropped.",
    bug="the judge trusts the log of one member",
    catches=Catch(bugs=("assumes_commit",), found_by=("K4",)),
    workload=TOPICS,
    topology=Topology(zookeeper_members=3),
    steps=(Step(fault=PAUSE_ZOOKEEPER_LEADER, hold=Acknowledged(20)),),
    expects=Expectation(elections=(0, 2)),
    not_simulated="the simulated ZooKeeper has one member",
)
