"""A controller paused just before a commit cannot write after its successor's election."""

from __future__ import annotations

from chaos.faults.pause_controller_before_commit import PAUSE_CONTROLLER_BEFORE_COMMIT
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

PAUSE_BEFORE_COMMIT = Scenario(
    name="pause_before_commit",
    aim="A controller paused just before a commit cannot write after its successor's election.",
    bug="KAFKA-6082: a former controller writes without a check of the epoch",
    catches=Catch(bugs=("fence_off", "retry_across_sessions"), found_by=("W1", "W2", "W3")),
    workload=TOPICS,
    steps=(Step(fault=PAUSE_CONTROLLER_BEFORE_COMMIT, hold=AnotherController(), times=3),),
    expects=Expectation(elections=(3, 4)),
)
