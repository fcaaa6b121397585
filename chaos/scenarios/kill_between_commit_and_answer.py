"""If a kill prevents the first answer, a write is executed once and its client gets the result."""

from __future__ import annotations

from chaos.faults.kill_controller_before_answer import KILL_CONTROLLER_BEFORE_ANSWER
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

KILL_BETWEEN_COMMIT_AND_ANSWER = Scenario(
    name="kill_between_commit_and_answer",
    aim="If a kill prevents the response, the write is executed once and its client gets the "
    "result.",
    bug="a resent request is executed again, or it gets TOPIC_ALREADY_EXISTS for its own topic",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("D2", "F7")),
    workload=TOPICS,
    steps=(Step(fault=KILL_CONTROLLER_BEFORE_ANSWER, hold=AnotherController(), times=3),),
    expects=Expectation(elections=(3, 4)),
)
