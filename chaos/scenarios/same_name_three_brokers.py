"""If three clients create one topic at three brokers, at most one client succeeds."""

from __future__ import annotations

from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Step
from chaos.workloads.one_topic import ONE_TOPIC

SAME_NAME_THREE_BROKERS = Scenario(
    name="same_name_three_brokers",
    aim="If three clients create one topic at three brokers, at most one client succeeds.",
    bug="KAFKA-7082: the topic has the configs of a client whose request was rejected",
    catches=Catch(
        bugs=("writes_rejected_configs",),
        found_by=("has the configuration of a client that was rejected",),
    ),
    workload=ONE_TOPIC,
    steps=(Step(fault=KILL_CONTROLLER, hold=AnotherController()),),
    expects=Expectation(elections=(1, 1)),
)
