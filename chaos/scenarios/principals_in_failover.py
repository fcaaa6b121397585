"""Each request is decided for the user who sent it, across three failovers."""

from __future__ import annotations

from chaos.faults.expire_controller import EXPIRE_CONTROLLER
from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.faults.pause_controller import PAUSE_CONTROLLER
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Step
from chaos.workloads.forwarded_principals import FORWARDED_PRINCIPALS

PRINCIPALS_IN_FAILOVER = Scenario(
    name="principals_in_failover",
    aim="Each request is decided for the user who sent it, across three failovers.",
    bug="KIP-590: a principal that is lost or mixed up in an Envelope",
    catches=Catch(bugs=("swap_principals",), found_by=("F1",)),
    workload=FORWARDED_PRINCIPALS,
    steps=(
        Step(fault=KILL_CONTROLLER, after=200, hold=AnotherController()),
        Step(fault=EXPIRE_CONTROLLER, after=200),
        Step(fault=PAUSE_CONTROLLER, after=200, hold=AnotherController()),
    ),
    after=200,
    expects=Expectation(elections=(3, 4)),
    not_simulated="the simulated channel has no TLS, so brokers cannot prove their identity",
)
