"""The cluster works after a series of faults of processes, links and ZooKeeper."""

from __future__ import annotations

from chaos.faults.cut_controller_from_zookeeper import CUT_CONTROLLER_FROM_ZOOKEEPER
from chaos.faults.kill_broker import KILL_BROKER
from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.faults.kill_zookeeper_leader import KILL_ZOOKEEPER_LEADER
from chaos.faults.lose_reply_of_commit import LOSE_REPLY_OF_COMMIT
from chaos.faults.pause_controller import PAUSE_CONTROLLER
from chaos.scenario import (
    Acknowledged,
    AnotherController,
    Catch,
    Expectation,
    Scenario,
    Sessions,
    Step,
    Topology,
)
from chaos.workloads.topics import TOPICS

CASCADE = Scenario(
    name="cascade",
    aim="The cluster works after a series of faults of processes, links and ZooKeeper.",
    bug="errors that no single fault shows",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("F7",)),
    workload=TOPICS,
    topology=Topology(zookeeper_members=3),
    steps=(
        Step(fault=CUT_CONTROLLER_FROM_ZOOKEEPER, hold=Sessions(3)),
        Step(fault=KILL_BROKER, hold=Acknowledged(10)),
        Step(fault=LOSE_REPLY_OF_COMMIT, hold=Acknowledged(10)),
        Step(fault=PAUSE_CONTROLLER, hold=AnotherController()),
        Step(fault=KILL_ZOOKEEPER_LEADER, hold=Acknowledged(10)),
        Step(fault=KILL_CONTROLLER, hold=AnotherController()),
    ),
    expects=Expectation(elections=(3, None)),
    not_simulated="the simulated ZooKeeper has one member",
)
