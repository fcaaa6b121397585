"""A cut between brokers and the controller causes no election. Then the brokers forward again."""

from __future__ import annotations

from chaos.faults.cut_controller_from_peers import CUT_CONTROLLER_FROM_PEERS
from chaos.scenario import Catch, Expectation, Scenario, Sessions, Step
from chaos.workloads.topics import TOPICS

BROKER_CONTROLLER_CUT = Scenario(
    name="broker_controller_cut",
    aim="A cut between brokers and the controller causes no election; after the cut the brokers "
    "forward again.",
    bug="a client gets NOT_CONTROLLER; a request is executed twice after the cut",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("D2", "F7")),
    workload=TOPICS,
    steps=(Step(fault=CUT_CONTROLLER_FROM_PEERS, hold=Sessions(5)),),
    expects=Expectation(elections=(0, 0)),
)
