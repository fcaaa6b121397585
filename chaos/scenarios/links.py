"""Scenarios in which links between brokers, and between brokers and ZooKeeper, fail."""

from __future__ import annotations

from typing import Final

from chaos.faults.links import (
    CORRUPT_ENVELOPE,
    CUT_BROKER_FROM_ZOOKEEPER,
    CUT_CONTROLLER_FROM_PEERS,
    CUT_CONTROLLER_FROM_ZOOKEEPER,
    CUT_REPLIES_OF_CONTROLLER,
    CUT_REQUESTS_TO_CONTROLLER,
    LOSE_REPLY_OF_COMMIT,
    LOSE_REQUEST_OF_COMMIT,
    RESET_PEERS_OF_CONTROLLER,
    SLOW_PEERS_OF_CONTROLLER,
)
from chaos.scenario import Acknowledged, Catch, Expectation, Scenario, Sessions, Step, Topology
from chaos.workloads.topics import TOPICS

REPLY_OF_COMMIT_LOST = Scenario(
    name="reply_of_commit_lost",
    aim="If ZooKeeper's reply to a write is lost, the client still gets the actual result.",
    bug="TOPIC_ALREADY_EXISTS for a client's own topic, similar to CURATOR-268 and "
    "BookKeeper issue 1967",
    catches=Catch(bugs=("naive_retry",), found_by=("D5",)),
    workload=TOPICS,
    # Eight clients: the ninth success is of a request sent after the loss (see random_faults).
    steps=(Step(fault=LOSE_REPLY_OF_COMMIT, after=8, hold=Acknowledged(9), times=10),),
    expects=Expectation(elections=(0, 0), open_max=0),
)

REQUEST_OF_COMMIT_LOST = Scenario(
    name="request_of_commit_lost",
    aim="A write that is lost on its way to ZooKeeper is sent again and executed once.",
    bug="a definite error for a write that is resent; a write that takes effect twice",
    catches=Catch(bugs=("assumes_commit",), found_by=("D1", "K4")),
    workload=TOPICS,
    # Eight clients: the ninth success is of a request sent after the loss (see random_faults).
    steps=(Step(fault=LOSE_REQUEST_OF_COMMIT, after=8, hold=Acknowledged(9), times=10),),
    expects=Expectation(elections=(0, 0), open_max=0),
)

BROKER_CONTROLLER_CUT = Scenario(
    name="broker_controller_cut",
    aim="A cut between brokers and the controller causes no election; after the cut the brokers "
    "forward again.",
    bug="a client gets NOT_CONTROLLER; a request is executed twice after the cut",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("D2", "F7")),
    workload=TOPICS,
    steps=(Step(fault=CUT_CONTROLLER_FROM_PEERS, hold=Sessions(5)),),
    expects=Expectation(elections=(0, 0)),
)

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

REPLIES_LOST = Scenario(
    name="replies_lost",
    aim="Requests are executed once, even if the replies to their Envelopes are lost.",
    bug="a resent request is executed again: the Envelopes of KIP-590 have no id by which "
    "the controller could recognize a resend",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("D5", "F7")),
    workload=TOPICS,
    steps=(Step(fault=CUT_REPLIES_OF_CONTROLLER, hold=Sessions(5)),),
    expects=Expectation(elections=(0, 0)),
)

REQUESTS_LOST = Scenario(
    name="requests_lost",
    aim="Envelopes that are lost or late are resent, and each request is executed once.",
    bug="a late Envelope and its resend are both executed",
    catches=Catch(bugs=("never_resends",), found_by=("without a definite result",)),
    workload=TOPICS,
    steps=(Step(fault=CUT_REQUESTS_TO_CONTROLLER, hold=Sessions(5)),),
    expects=Expectation(elections=(0, 0), open_max=0),
)

CONTROLLER_ZOOKEEPER_CUT = Scenario(
    name="controller_zookeeper_cut",
    aim="A controller cut off from ZooKeeper sends no definite response; another controller is "
    "elected.",
    bug="W3: a controller responds without recent contact with ZooKeeper",
    catches=Catch(bugs=("acts_after_resigning",), found_by=("W7",)),
    workload=TOPICS,
    steps=(Step(fault=CUT_CONTROLLER_FROM_ZOOKEEPER, hold=Sessions(3)),),
    expects=Expectation(elections=(1, 2)),
)

BROKER_ZOOKEEPER_CUT = Scenario(
    name="broker_zookeeper_cut",
    aim="A broker whose session expired during a cut from ZooKeeper registers again and catches "
    "up.",
    bug="KAFKA-5473: a broker whose session expired gets no new session",
    catches=Catch(bugs=("registers_once",), found_by=("without a definite result",)),
    workload=TOPICS,
    steps=(Step(fault=CUT_BROKER_FROM_ZOOKEEPER, hold=Sessions(3)),),
    expects=Expectation(elections=(0, 0), open_max=0),
)

RESETS = Scenario(
    name="resets",
    aim="No request is lost or repeated when connections to the controller are reset.",
    bug="a resent request that is executed again",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("D5", "F7")),
    workload=TOPICS,
    steps=(Step(fault=RESET_PEERS_OF_CONTROLLER, after=8, hold=Acknowledged(8), times=10),),
    expects=Expectation(elections=(0, 0), open_max=0),
)

SLOW_LINK = Scenario(
    name="slow_link",
    aim="Links that deliver each Envelope 300 ms late cause no error and no election.",
    bug="time limits and heartbeats that treat a slow peer as a dead one",
    catches=Catch(bugs=("gives_up_early",), found_by=("without a definite result",)),
    workload=TOPICS,
    steps=(Step(fault=SLOW_PEERS_OF_CONTROLLER, hold=Acknowledged(60)),),
    expects=Expectation(elections=(0, 0), open_max=0),
)

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

SCENARIOS: Final[tuple[Scenario, ...]] = (
    REPLY_OF_COMMIT_LOST,
    REQUEST_OF_COMMIT_LOST,
    BROKER_CONTROLLER_CUT,
    REQUESTS_TIME_OUT,
    REPLIES_LOST,
    REQUESTS_LOST,
    CONTROLLER_ZOOKEEPER_CUT,
    BROKER_ZOOKEEPER_CUT,
    RESETS,
    SLOW_LINK,
    MALFORMED_ENVELOPES,
)
