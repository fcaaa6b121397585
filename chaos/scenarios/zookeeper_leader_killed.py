"""When ZooKeeper's leader is killed, no write is lost and at most one controller is elected."""

from __future__ import annotations

from chaos.faults.kill_zookeeper_leader import KILL_ZOOKEEPER_LEADER
from chaos.scenario import Acknowledged, Catch, Expectation, Scenario, Step, Topology
from chaos.workloads.topics import TOPICS

ZOOKEEPER_LEADER_KILLED = Scenario(
    name="zookeeper_leader_killed",
    aim="When ZooKeeper's leader is killed, no write is lost and at most one controller is "
    "elected.",
    bug="KAFKA-4442; writes that are acknowledged before the quorum has them",
    catches=Catch(bugs=("assumes_commit",), found_by=("K4",)),
    workload=TOPICS,
    topology=Topology(zookeeper_members=3),
    steps=(Step(fault=KILL_ZOOKEEPER_LEADER, hold=Acknowledged(20)),),
    expects=Expectation(elections=(0, 1)),
    not_simulated="the simulated ZooKeeper has one member",
)
