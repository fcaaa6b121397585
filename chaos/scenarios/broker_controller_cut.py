"""Once a cut between brokers and the controller has ended, the brokers forward again."""

from __future__ import annotations

from chaos.faults.cut_controller_from_peers import CUT_CONTROLLER_FROM_PEERS
from chaos.scenario import Catch, Expectation, Scenario, Sessions, Step
from chaos.workloads.topics import TOPICS

BROKER_CONTROLLER_CUT = Scenario(
    name="broker_controller_cut",
    aim="Once a cut between brokers and the controller has ended, the brokers forward again; no "
    "election takes place.",
    bug="a client gets NOT_CONTROLLER; a request is executed twice after the cut",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("D2", "F7")),
    workload=TOPICS,
    steps=(Step(fault=CUT_CONTROLLER_FROM_PEERS, hold=Sessions(5)),),
    expects=Expectation(elections=(0, 0)),
)
