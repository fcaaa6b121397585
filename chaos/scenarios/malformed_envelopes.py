"""Requests whose Envelopes arrive malformed are sent again and executed once."""

from __future__ import annotations

from chaos.faults.corrupt_envelope import CORRUPT_ENVELOPE
from chaos.scenario import Acknowledged, Catch, Expectation, Scenario, Step, Topology
from chaos.workloads.topics import TOPICS

MALFORMED_ENVELOPES = Scenario(
    name="malformed_envelopes",
    aim="A request whose Envelope arrives malformed is sent again and executed once.",
    bug="a malformed Envelope makes the controller fail, or its request is lost",
    catches=Catch(bugs=("never_resends",), found_by=("without a definite result",)),
    workload=TOPICS,
    topology=Topology(properties={"bridgehead.grpc.tls": "false"}),
    steps=(Step(fault=CORRUPT_ENVELOPE, after=10, hold=Acknowledged(10), times=10),),
    expects=Expectation(elections=(0, 0), open_max=0),
    not_simulated="the simulated network carries messages, not bytes",
)
