"""After 100 failovers, no write of any API is lost or repeated."""

from __future__ import annotations

from chaos.faults.expire_controller import EXPIRE_CONTROLLER
from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.faults.pause_controller import PAUSE_CONTROLLER
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Step
from chaos.workloads.every_write_api import EVERY_WRITE_API

HUNDRED_FAILOVERS = Scenario(
    name="hundred_failovers",
    aim="After 60 kills, 20 pauses and 20 lost sessions of controllers, no write of any API is "
    "lost or repeated.",
    bug="errors that occur in one of fifty failovers",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("D3", "F7")),
    workload=EVERY_WRITE_API,
    steps=(
        Step(fault=KILL_CONTROLLER, after=100, hold=AnotherController(), times=6),
        Step(fault=PAUSE_CONTROLLER, after=100, hold=AnotherController(), times=2),
        Step(fault=EXPIRE_CONTROLLER, after=100, times=2),
    ),
    rounds=10,
    expects=Expectation(
        elections=(100, None),
        acknowledged_min=10_000,
        judges=("W1", "W2", "W3", "D1", "D2", "D3", "D4", "D5", "F7"),
    ),
)
