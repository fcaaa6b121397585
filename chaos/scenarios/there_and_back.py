"""Acknowledged deletions are kept when an earlier controller is elected again."""

from __future__ import annotations

from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.faults.pause_controller import PAUSE_CONTROLLER
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

THERE_AND_BACK = Scenario(
    name="there_and_back",
    aim="Acknowledged deletions are kept when an earlier controller is elected again.",
    bug="KAFKA-5310, KAFKA-2300, KAFKA-12315: state of an earlier term is used again",
    catches=Catch(bugs=("reuses_image",), found_by=("W3", "W7")),
    workload=TOPICS,
    steps=(
        Step(fault=PAUSE_CONTROLLER, hold=AnotherController()),
        Step(fault=KILL_CONTROLLER, hold=AnotherController()),
    ),
    # Two consecutive terms never have the same controller. With three brokers, at least one of the
    # five terms therefore belongs to a broker that was paused as the controller of an earlier term.
    rounds=2,
    expects=Expectation(elections=(4, 4)),
)
