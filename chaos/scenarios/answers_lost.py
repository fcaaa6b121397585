"""Requests are executed once, even if the replies to their Envelopes are lost."""

from __future__ import annotations

from chaos.faults.lose_replies_of_controller import LOSE_REPLIES_OF_CONTROLLER
from chaos.scenario import Catch, Expectation, Scenario, Sessions, Step
from chaos.workloads.topics import TOPICS

ANSWERS_LOST = Scenario(
    name="answers_lost",
    aim="Requests are executed once, even if the replies to their Envelopes are lost.",
    bug="a resent request is executed again: the Envelopes of KIP-590 have no id by which "
    "the controller could recognize a resend",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("D5", "F7")),
    workload=TOPICS,
    steps=(Step(fault=LOSE_REPLIES_OF_CONTROLLER, hold=Sessions(5)),),
    expects=Expectation(elections=(0, 0)),
)
