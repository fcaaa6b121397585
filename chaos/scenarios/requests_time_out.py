"""Requests that cannot be forwarded end with REQUEST_TIMED_OUT after `request.timeout.ms`."""

from __future__ import annotations

from chaos.faults.cut_controller_from_peers import CUT_CONTROLLER_FROM_PEERS
from chaos.scenario import Catch, Expectation, Scenario, Sessions, Step, Topology
from chaos.workloads.topics import TOPICS

REQUESTS_TIME_OUT = Scenario(
    name="requests_time_out",
    aim="Requests that cannot be forwarded end with REQUEST_TIMED_OUT after `request.timeout.ms`.",
    bug="KAFKA-10667: a broker forwards requests for ever",
    catches=Catch(bugs=("resends_forever",), found_by=("F8", "L1")),
    workload=TOPICS,
    topology=Topology(properties={"request.timeout.ms": "2000"}),
    steps=(Step(fault=CUT_CONTROLLER_FROM_PEERS, hold=Sessions(5)),),
    expects=Expectation(elections=(0, 0)),
)
