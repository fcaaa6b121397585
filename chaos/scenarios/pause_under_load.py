"""A controller with a full queue writes nothing more after a pause in which its session expired."""

from __future__ import annotations

from chaos.faults.pause_controller import PAUSE_CONTROLLER
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Step
from chaos.workloads.many_topics import MANY_TOPICS

PAUSE_UNDER_LOAD = Scenario(
    name="pause_under_load",
    aim="A controller with a full queue writes nothing more after a pause in which its session "
    "expired.",
    bug="KAFKA-1096: a superseded controller adopts the new epoch and executes its queue",
    catches=Catch(bugs=("fence_off", "retry_across_sessions"), found_by=("W1", "W2", "W3")),
    workload=MANY_TOPICS,
    steps=(Step(fault=PAUSE_CONTROLLER, after=100, hold=AnotherController(), times=2),),
    after=200,
    expects=Expectation(elections=(2, 2)),
)
