"""Brokers that cannot reach the controller go on when they can; there is no election."""

from __future__ import annotations

from chaos.faults.cut_controller_from_peers import CUT_CONTROLLER_FROM_PEERS
from chaos.scenario import Expectation, Scenario, Sessions, Step
from chaos.workloads.topics import TOPICS

BROKER_CONTROLLER_CUT = Scenario(
    name="broker_controller_cut",
    aim="Brokers that cannot reach the controller go on when they can; there is no election.",
    bug="NOT_CONTROLLER to a client; requests that act twice after the cut",
    workload=TOPICS,
    steps=(Step(fault=CUT_CONTROLLER_FROM_PEERS, hold=Sessions(5)),),
    expects=Expectation(elections=(0, 0)),
)
