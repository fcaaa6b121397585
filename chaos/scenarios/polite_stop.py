"""When a controller is stopped, the next one is elected before the session timeout."""

from __future__ import annotations

from chaos.faults.stop_controller import STOP_CONTROLLER
from chaos.scenario import AnotherController, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

POLITE_STOP = Scenario(
    name="polite_stop",
    aim="When a controller is stopped, the next one is elected before the session timeout.",
    bug="KAFKA-1663, KAFKA-9189",
    workload=TOPICS,
    steps=(Step(fault=STOP_CONTROLLER, hold=AnotherController()),),
    expects=Expectation(elections=(1, 1)),
)
