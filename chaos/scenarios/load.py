"""Scenarios that differ in what the clients do, or in how much happens."""

from __future__ import annotations

from typing import Final

from chaos.faults.kills import KILL_BROKER, KILL_CONTROLLER, STOP_CONTROLLER
from chaos.faults.links import (
    CUT_BROKER_FROM_ZOOKEEPER,
    CUT_CONTROLLER_FROM_PEERS,
    CUT_CONTROLLER_FROM_ZOOKEEPER,
    CUT_REPLIES_OF_CONTROLLER,
    CUT_REQUESTS_TO_CONTROLLER,
    LOSE_REPLY_OF_COMMIT,
    LOSE_REQUEST_OF_COMMIT,
    RESET_PEERS_OF_CONTROLLER,
)
from chaos.faults.pauses import PAUSE_CONTROLLER
from chaos.faults.zookeeper import EXPIRE_CONTROLLER, KILL_ZOOKEEPER_LEADER
from chaos.scenario import (
    Acknowledged,
    AnotherController,
    Catch,
    Draw,
    Expectation,
    Scenario,
    Sessions,
    Step,
    Topology,
)
from chaos.workloads.every_write_api import EVERY_WRITE_API
from chaos.workloads.forwarded_principals import FORWARDED_PRINCIPALS
from chaos.workloads.mixed_requests import MIXED_REQUESTS
from chaos.workloads.one_object import ONE_OBJECT
from chaos.workloads.one_topic import ONE_TOPIC
from chaos.workloads.read_after_write import READ_AFTER_WRITE
from chaos.workloads.topics import BURSTS, TOPICS

SAME_NAME_THREE_BROKERS = Scenario(
    name="same_name_three_brokers",
    aim="If three clients create one topic at three brokers, at most one client succeeds.",
    bug="KAFKA-7082: the topic has the configs of a client whose request was rejected",
    catches=Catch(
        bugs=("writes_rejected_configs",),
        found_by=("has the configuration of a client that was rejected",),
    ),
    workload=ONE_TOPIC,
    steps=(Step(fault=KILL_CONTROLLER, hold=AnotherController()),),
    expects=Expectation(elections=(1, 1)),
)

CHANGES_OF_ONE_OBJECT = Scenario(
    name="changes_of_one_object",
    aim="No change is lost when three brokers forward changes of one topic's configs and ACLs.",
    bug="KAFKA-7255, KAFKA-3328: a change of ACLs that undoes another change",
    catches=Catch(
        bugs=("decides_on_old_images",),
        found_by=("that are not those of the clients",),
    ),
    workload=ONE_OBJECT,
    steps=(Step(fault=KILL_CONTROLLER, after=100, hold=AnotherController(), times=2),),
    expects=Expectation(elections=(2, 3)),
)

MIXED_REQUESTS_IN_FAILOVER = Scenario(
    name="mixed_requests_in_failover",
    aim="Each topic of a request gets its own result, even if the request is resent.",
    bug="an invalid topic that changes the results of the other topics of the request",
    catches=Catch(bugs=("rejects_the_rest",), found_by=("instead of 0",)),
    workload=MIXED_REQUESTS,
    steps=(Step(fault=KILL_CONTROLLER, hold=AnotherController(), times=3),),
    expects=Expectation(elections=(3, 4)),
)

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

READS_IN_FAILOVER = Scenario(
    name="reads_in_failover",
    aim="A read at any broker shows every acknowledged write, even during failovers.",
    bug="stale reads after a write: KAFKA-4385 and similar issues",
    catches=Catch(bugs=("response_before_applied",), found_by=("was acknowledged but not read",)),
    workload=READ_AFTER_WRITE,
    steps=(Step(fault=KILL_CONTROLLER, after=200, hold=AnotherController(), times=2),),
    expects=Expectation(elections=(2, 2)),
)

CASCADE = Scenario(
    name="cascade",
    aim="The cluster works after a series of faults of processes, links and ZooKeeper.",
    bug="errors that no single fault shows",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("F7",)),
    workload=TOPICS,
    topology=Topology(zookeeper_members=3),
    steps=(
        Step(fault=CUT_CONTROLLER_FROM_ZOOKEEPER, hold=Sessions(3)),
        Step(fault=KILL_BROKER, hold=Acknowledged(10)),
        Step(fault=LOSE_REPLY_OF_COMMIT, hold=Acknowledged(10)),
        Step(fault=PAUSE_CONTROLLER, hold=AnotherController()),
        Step(fault=KILL_ZOOKEEPER_LEADER, hold=Acknowledged(10)),
        Step(fault=KILL_CONTROLLER, hold=AnotherController()),
    ),
    expects=Expectation(elections=(3, None)),
    not_simulated="the simulated ZooKeeper has one member",
)

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

_RANDOM_STEPS: Final = (
    Step(fault=PAUSE_CONTROLLER, after=10, hold=AnotherController()),
    Step(fault=PAUSE_CONTROLLER, after=10, hold=Sessions(0.5)),
    Step(fault=PAUSE_CONTROLLER, after=10, hold=Sessions(1.0)),
    Step(fault=KILL_CONTROLLER, after=10, hold=AnotherController()),
    Step(fault=KILL_CONTROLLER, after=10),
    Step(fault=STOP_CONTROLLER, after=10, hold=AnotherController()),
    Step(fault=EXPIRE_CONTROLLER, after=10, hold=Acknowledged(10)),
    Step(fault=KILL_BROKER, after=10, hold=Acknowledged(10)),
    # In 4 s there are two bursts whose Envelopes are held for at least a second. By chance, all six
    # creations of a burst can go to the controller's broker, and then the cut holds no Envelope.
    Step(fault=CUT_CONTROLLER_FROM_PEERS, after=10, hold=Sessions(2.0)),
    Step(fault=CUT_REQUESTS_TO_CONTROLLER, after=10, hold=Sessions(2.0)),
    Step(fault=CUT_REPLIES_OF_CONTROLLER, after=10, hold=Sessions(2.0)),
    Step(fault=RESET_PEERS_OF_CONTROLLER, after=10, hold=Acknowledged(5)),
    Step(fault=CUT_CONTROLLER_FROM_ZOOKEEPER, after=10, hold=Sessions(1.5)),
    Step(fault=CUT_BROKER_FROM_ZOOKEEPER, after=10, hold=Sessions(1.5)),
    # After the loss, each of the six clients has at most four successes before its next write
    # succeeds: the request in flight and three reads. So the 25 successes include a write that was
    # sent after the loss. When this write succeeds, the controller has noticed the loss.
    Step(fault=LOSE_REPLY_OF_COMMIT, after=10, hold=Acknowledged(25)),
    Step(fault=LOSE_REQUEST_OF_COMMIT, after=10, hold=Acknowledged(25)),
)

RANDOM_FAULTS = Scenario(
    name="random_faults",
    aim="After five faults, drawn by the seed, no write is lost or repeated.",
    bug="errors that only a certain sequence of faults shows",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("F7",)),
    workload=BURSTS,
    steps=(),
    draw=Draw(5, _RANDOM_STEPS),
    # As above: 24 successes can be without a new write, and T1 requires two.
    after=26,
    expects=Expectation(elections=(0, None), acknowledged_min=200),
)

QUIET_SEA = Scenario(
    name="quiet_sea",
    aim="Without a fault there is no election, no unknown outcome and no violation.",
    bug="false alarms of the judge; unnecessary elections",
    catches=Catch(bugs=("resigns_early",), found_by=("elections; expected 0 to 0",)),
    workload=TOPICS,
    steps=(),
    after=1000,
    expects=Expectation(elections=(0, 0), open_max=0),
)

SCENARIOS: Final[tuple[Scenario, ...]] = (
    SAME_NAME_THREE_BROKERS,
    CHANGES_OF_ONE_OBJECT,
    MIXED_REQUESTS_IN_FAILOVER,
    PRINCIPALS_IN_FAILOVER,
    READS_IN_FAILOVER,
    CASCADE,
    HUNDRED_FAILOVERS,
    RANDOM_FAULTS,
    QUIET_SEA,
)
