"""A read at any broker shows every acknowledged write, even during failovers."""

from __future__ import annotations

from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Step
from chaos.workloads.read_after_write import READ_AFTER_WRITE

READS_IN_FAILOVER = Scenario(
    name="reads_in_failover",
    aim="A read at any broker shows every acknowledged write, even during failovers.",
    bug="stale reads after a write: KAFKA-4385 and similar issues",
    catches=Catch(bugs=("answer_before_applied",), found_by=("was acknowledged but not read",)),
    workload=READ_AFTER_WRITE,
    steps=(Step(fault=KILL_CONTROLLER, after=200, hold=AnotherController(), times=2),),
    expects=Expectation(elections=(2, 2)),
)
