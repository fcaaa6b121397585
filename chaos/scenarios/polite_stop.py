"""When a controller is stopped, the next controller is elected before the session timeout."""

from __future__ import annotations

from chaos.faults.stop_controller import STOP_CONTROLLER
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Step, Topology
from chaos.workloads.topics import TOPICS

POLITE_STOP = Scenario(
    name="polite_stop",
    aim="When a controller is stopped, the next controller is elected before the session timeout.",
    bug="KAFKA-1663, KAFKA-9189: a controller that cannot shut down",
    catches=Catch(bugs=("leaves_sessions_open",), found_by=("no operation succeeded for",)),
    workload=TOPICS,
    steps=(Step(fault=STOP_CONTROLLER, hold=AnotherController()),),
    expects=Expectation(elections=(1, 1), gap_max_s=4.0),
    topology=Topology(session_timeout_ms=6000),
)
