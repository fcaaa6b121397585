"""No change is lost when brokers forward changes of one topic at the same time."""

from __future__ import annotations

from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Step
from chaos.workloads.one_object import ONE_OBJECT

CHANGES_OF_ONE_OBJECT = Scenario(
    name="changes_of_one_object",
    aim="No change is lost when three brokers forward changes of one topic's configs and ACLs.",
    bug="KAFKA-7255, KAFKA-3328: a change of ACLs that undoes another change",
    catches=Catch(
        bugs=("decides_on_old_images",),
        found_by=("that are not those of the clients",),
    ),
    workload=ONE_OBJECT,
    steps=(Step(fault=KILL_CONTROLLER, after=100, hold=AnotherController(), times=2),),
    expects=Expectation(elections=(2, 3)),
)
