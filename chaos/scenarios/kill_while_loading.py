"""If a controller is killed before it has loaded its state, another controller takes over."""

from __future__ import annotations

from chaos.faults.kill_controller_while_loading import KILL_CONTROLLER_WHILE_LOADING
from chaos.scenario import Catch, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

KILL_WHILE_LOADING = Scenario(
    name="kill_while_loading",
    aim="If a controller is killed before it has loaded its state, another controller takes over.",
    bug="KAFKA-4442: an election that ends halfway leaves no controller",
    catches=Catch(bugs=("splits_the_election",), found_by=("W4",)),
    workload=TOPICS,
    steps=(Step(fault=KILL_CONTROLLER_WHILE_LOADING, times=3),),
    expects=Expectation(elections=(3, None)),
)
