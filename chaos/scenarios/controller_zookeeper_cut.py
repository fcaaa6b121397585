"""A controller that has lost ZooKeeper gives no definite answer, and another takes over."""

from __future__ import annotations

from chaos.faults.cut_controller_from_zookeeper import CUT_CONTROLLER_FROM_ZOOKEEPER
from chaos.scenario import Expectation, Scenario, Sessions, Step
from chaos.workloads.topics import TOPICS

CONTROLLER_ZOOKEEPER_CUT = Scenario(
    name="controller_zookeeper_cut",
    aim="A controller that has lost ZooKeeper gives no definite answer, and another takes over.",
    bug="a lease that is not checked: W3",
    workload=TOPICS,
    steps=(Step(fault=CUT_CONTROLLER_FROM_ZOOKEEPER, hold=Sessions(3)),),
    expects=Expectation(elections=(1, 2)),
)
