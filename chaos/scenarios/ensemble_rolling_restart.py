"""No write is lost when ZooKeeper's leader is killed three times."""

from __future__ import annotations

from chaos.faults.kill_zookeeper_leader import KILL_ZOOKEEPER_LEADER
from chaos.scenario import Acknowledged, Catch, Expectation, Scenario, Step, Topology
from chaos.workloads.topics import TOPICS

ENSEMBLE_ROLLING_RESTART = Scenario(
    name="ensemble_rolling_restart",
    aim="No write is lost when ZooKeeper's leader is killed three times.",
    bug="sessions that do not move to another member",
    catches=Catch(bugs=("stays_at_one_member",), found_by=("were not acknowledged within",)),
    workload=TOPICS,
    topology=Topology(zookeeper_members=3),
    steps=(Step(fault=KILL_ZOOKEEPER_LEADER, hold=Acknowledged(10), times=3),),
    expects=Expectation(elections=(0, 3)),
    not_simulated="the simulated ZooKeeper has one member",
)
