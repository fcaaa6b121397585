"""Requests in flight at a killed broker are executed once or not at all."""

from __future__ import annotations

from chaos.faults.kill_broker import KILL_BROKER
from chaos.scenario import Acknowledged, Catch, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

BROKER_KILLED = Scenario(
    name="broker_killed",
    aim="Requests in flight at a killed broker are executed once or not at all.",
    bug="D3: an effect without a recorded outcome",
    catches=Catch(bugs=("forgets_restarted_brokers",), found_by=("no controller became active",)),
    workload=TOPICS,
    steps=(Step(fault=KILL_BROKER, hold=Acknowledged(20), times=3),),
    expects=Expectation(elections=(0, 0)),
)
