"""A broker whose session expired during a cut from ZooKeeper registers again and catches up."""

from __future__ import annotations

from chaos.faults.cut_broker_from_zookeeper import CUT_BROKER_FROM_ZOOKEEPER
from chaos.scenario import Catch, Expectation, Scenario, Sessions, Step
from chaos.workloads.topics import TOPICS

BROKER_ZOOKEEPER_CUT = Scenario(
    name="broker_zookeeper_cut",
    aim="A broker whose session expired during a cut from ZooKeeper registers again and catches "
    "up.",
    bug="KAFKA-5473: a broker whose session expired gets no new session",
    catches=Catch(bugs=("registers_once",), found_by=("without a definite result",)),
    workload=TOPICS,
    steps=(Step(fault=CUT_BROKER_FROM_ZOOKEEPER, hold=Sessions(3)),),
    expects=Expectation(elections=(0, 0), open_max=0),
)
