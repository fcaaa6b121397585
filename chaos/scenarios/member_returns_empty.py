"""ZooKeeper's leader restarts without its data."""

from __future__ import annotations

from chaos.faults.empty_zookeeper_leader import EMPTY_ZOOKEEPER_LEADER
from chaos.scenario import Acknowledged, Catch, Expectation, Scenario, Step, Topology
from chaos.workloads.topics import TOPICS

MEMBER_RETURNS_EMPTY = Scenario(
    name="member_returns_empty",
    aim="If ZooKeeper's leader restarts without its data, it gets a snapshot and no write is lost.",
    bug="the judge reports lost writes because a member's log begins late",
    catches=Catch(bugs=("assumes_commit",), found_by=("K4",)),
    workload=TOPICS,
    topology=Topology(zookeeper_members=3),
    steps=(Step(fault=EMPTY_ZOOKEEPER_LEADER, hold=Acknowledged(20)),),
    expects=Expectation(elections=(0, 1)),
    not_simulated="the simulated ZooKeeper has one member",
)
