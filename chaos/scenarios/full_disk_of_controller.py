"""A controller whose disk is full is replaced; no evidence is lost or damaged."""

from __future__ import annotations

from chaos.faults.fill_disk_of_controller import FILL_DISK_OF_CONTROLLER
from chaos.scenario import AnotherController, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

FULL_DISK_OF_CONTROLLER = Scenario(
    name="full_disk_of_controller",
    aim="A controller whose disk is full is replaced; no evidence is lost or damaged.",
    bug="a response without evidence; a broken line in the event log after the disk was full",
    catches="seeded bugs cannot change how a node writes its event log; tests/unit/event_log "
    "tests a full disk",
    workload=TOPICS,
    steps=(Step(fault=FILL_DISK_OF_CONTROLLER, hold=AnotherController()),),
    expects=Expectation(elections=(1, None)),
    not_simulated="simulated disks do not fail",
)
