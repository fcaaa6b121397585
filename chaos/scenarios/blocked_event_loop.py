"""A controller whose event loop is blocked is replaced, and writes nothing afterwards."""

from __future__ import annotations

from chaos.faults.block_controller import BLOCK_CONTROLLER
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

BLOCKED_EVENT_LOOP = Scenario(
    name="blocked_event_loop",
    aim="A controller whose event loop is blocked is replaced, and writes nothing afterwards.",
    bug="KAFKA-13407: a controller keeps its session alive, although it does not work",
    catches=Catch(bugs=("pings_while_blocked",), found_by=("No controller became active",)),
    workload=TOPICS,
    steps=(Step(fault=BLOCK_CONTROLLER, hold=AnotherController()),),
    expects=Expectation(elections=(1, 2)),
    not_simulated="a simulated process has no threads besides its event loop",
)
