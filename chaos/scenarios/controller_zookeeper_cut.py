"""A controller cut off from ZooKeeper sends no definite response; another controller is elected."""

from __future__ import annotations

from chaos.faults.cut_controller_from_zookeeper import CUT_CONTROLLER_FROM_ZOOKEEPER
from chaos.scenario import Catch, Expectation, Scenario, Sessions, Step
from chaos.workloads.topics import TOPICS

CONTROLLER_ZOOKEEPER_CUT = Scenario(
    name="controller_zookeeper_cut",
    aim="A controller cut off from ZooKeeper sends no definite response; another controller is "
    "elected.",
    bug="W3: a controller responds without recent contact with ZooKeeper",
    catches=Catch(bugs=("acts_after_resigning",), found_by=("W7",)),
    workload=TOPICS,
    steps=(Step(fault=CUT_CONTROLLER_FROM_ZOOKEEPER, hold=Sessions(3)),),
    expects=Expectation(elections=(1, 2)),
)
