"""After a kill of a controller that loads its state, another one takes over."""

from __future__ import annotations

from chaos.faults.kill_controller_while_loading import KILL_CONTROLLER_WHILE_LOADING
from chaos.scenario import Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

KILL_WHILE_LOADING = Scenario(
    name="kill_while_loading",
    aim="After a kill of a controller that loads its state, another one takes over.",
    bug="KAFKA-4442: an election that ends halfway leaves no controller",
    workload=TOPICS,
    steps=(Step(fault=KILL_CONTROLLER_WHILE_LOADING, times=3),),
    expects=Expectation(elections=(3, None)),
)
