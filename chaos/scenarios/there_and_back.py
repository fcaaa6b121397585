"""Deletions acknowledged by the second controller are kept when the first is elected again."""

from __future__ import annotations

from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.faults.pause_controller import PAUSE_CONTROLLER
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

THERE_AND_BACK = Scenario(
    name="there_and_back",
    aim="Deletions acknowledged by the second controller are kept when the first is elected again.",
    bug="KAFKA-5310, KAFKA-2300, KAFKA-12315: state of an earlier term is used again",
    catches=Catch(bugs=("reuses_image",), found_by=("W3", "W7")),
    workload=TOPICS,
    steps=(
        Step(fault=PAUSE_CONTROLLER, hold=AnotherController()),
        Step(fault=KILL_CONTROLLER, hold=AnotherController()),
    ),
    expects=Expectation(elections=(2, 2)),
)
