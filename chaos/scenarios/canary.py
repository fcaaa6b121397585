"""With the fence switched off, the judge finds the writes of a replaced controller.

The controller is paused just before a commit. It sends the commit after its successor's election.
All clients send their requests to the controller's broker. If they used other brokers, these would
resend the requests of this commit to the successor, which would execute them. ZooKeeper would then
reject the commit, for example because a topic exists.
"""

from __future__ import annotations

from chaos.faults.pause_controller_before_commit import PAUSE_CONTROLLER_BEFORE_COMMIT
from chaos.scenario import AnotherController, Expectation, Scenario, Step, Topology
from chaos.workloads.controllers_broker import CONTROLLERS_BROKER

CANARY = Scenario(
    name="canary",
    aim="With the fence switched off, the judge finds writes of a replaced controller (W1) and "
    "writes without a check of the epoch (W2).",
    bug="the seeded bugs fence_off and retry_across_sessions",
    catches="its nodes already have seeded bugs",
    workload=CONTROLLERS_BROKER,
    topology=Topology(seeded_bugs=("fence_off", "retry_across_sessions")),
    steps=(Step(fault=PAUSE_CONTROLLER_BEFORE_COMMIT, after=100, hold=AnotherController()),),
    after=200,
    expects=Expectation(elections=(1, None), violates=("W1", "W2"), may_violate_others=True),
)
