"""Envelopes that are lost or late are resent, and each request is executed once."""

from __future__ import annotations

from chaos.faults.lose_requests_to_controller import LOSE_REQUESTS_TO_CONTROLLER
from chaos.scenario import Catch, Expectation, Scenario, Sessions, Step
from chaos.workloads.topics import TOPICS

REQUESTS_LOST = Scenario(
    name="requests_lost",
    aim="Envelopes that are lost or late are resent, and each request is executed once.",
    bug="a late Envelope and its resend are both executed",
    catches=Catch(bugs=("never_resends",), found_by=("without a definite result",)),
    workload=TOPICS,
    steps=(Step(fault=LOSE_REQUESTS_TO_CONTROLLER, hold=Sessions(5)),),
    expects=Expectation(elections=(0, 0), open_max=0),
)
