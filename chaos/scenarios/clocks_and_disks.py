"""Scenarios with wall clocks that jump, and with full or slow disks."""

from __future__ import annotations

from typing import Final

from chaos.faults.clocks_and_disks import (
    FILL_DISK_OF_CONTROLLER,
    FILL_DISK_OF_ZOOKEEPER,
    MOVE_CLOCK_OF_CONTROLLER,
    SLOW_FSYNC_OF_ZOOKEEPER,
)
from chaos.scenario import (
    Acknowledged,
    AnotherController,
    Catch,
    Expectation,
    Scenario,
    Sessions,
    Step,
)
from chaos.workloads.topics import TOPICS

WALL_CLOCK_JUMPS = Scenario(
    name="wall_clock_jumps",
    aim="A controller whose wall clock jumps by an hour stays the controller; nothing times out.",
    bug="time limits that are measured with the wall clock",
    catches=Catch(bugs=("wall_clock_deadlines",), found_by=("without a definite result",)),
    workload=TOPICS,
    steps=(Step(fault=MOVE_CLOCK_OF_CONTROLLER, hold=Sessions(2)),),
    expects=Expectation(elections=(0, 0), open_max=0),
)

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

FULL_DISK_OF_ZOOKEEPER = Scenario(
    name="full_disk_of_zookeeper",
    aim="While ZooKeeper's disk is full, no write is acknowledged; afterwards writes succeed.",
    bug="D1: an acknowledgement without a commit",
    catches=Catch(bugs=("assumes_commit",), found_by=("K4",)),
    workload=TOPICS,
    steps=(Step(fault=FILL_DISK_OF_ZOOKEEPER, hold=Sessions(2)),),
    expects=Expectation(elections=(0, 2)),
    not_simulated="simulated disks do not fail",
)

SLOW_FSYNC = Scenario(
    name="slow_fsync",
    aim="If ZooKeeper's fsync takes 300 ms longer, no request fails and no controller is elected.",
    bug="time limits that are too short for a slow disk of ZooKeeper",
    catches=Catch(bugs=("gives_up_early",), found_by=("without a definite result",)),
    workload=TOPICS,
    steps=(Step(fault=SLOW_FSYNC_OF_ZOOKEEPER, hold=Acknowledged(60)),),
    expects=Expectation(elections=(0, 0), open_max=0),
    not_simulated="simulated disks take no time",
)

SCENARIOS: Final[tuple[Scenario, ...]] = (
    WALL_CLOCK_JUMPS,
    FULL_DISK_OF_CONTROLLER,
    FULL_DISK_OF_ZOOKEEPER,
    SLOW_FSYNC,
)
