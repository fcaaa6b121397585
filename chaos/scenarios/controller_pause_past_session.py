"""A controller that was paused until its session expired writes nothing when it resumes."""

from __future__ import annotations

from chaos.faults.pause_controller import PAUSE_CONTROLLER
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

CONTROLLER_PAUSE_PAST_SESSION = Scenario(
    name="controller_pause_past_session",
    aim="A controller that was paused until its session expired writes nothing when it resumes.",
    bug="KAFKA-6082, KAFKA-1096: a superseded controller continues to write to ZooKeeper",
    catches=Catch(bugs=("fence_off", "retry_across_sessions"), found_by=("W1", "W2", "W3")),
    workload=TOPICS,
    steps=(Step(fault=PAUSE_CONTROLLER, hold=AnotherController()),),
    expects=Expectation(elections=(1, 1)),
)
