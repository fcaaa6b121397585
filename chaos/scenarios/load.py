"""Load without faults, several faults in a row, and faults that the seed draws."""

from __future__ import annotations

from typing import Final

from chaos.faults.kills import KILL_BROKER, KILL_CONTROLLER, STOP_CONTROLLER
from chaos.faults.links import (
    CUT_BROKER_FROM_ZOOKEEPER,
    CUT_CONTROLLER_FROM_PEERS,
    CUT_CONTROLLER_FROM_ZOOKEEPER,
    LOSE_REPLIES_OF_CONTROLLER,
    LOSE_REPLY_OF_COMMIT,
    LOSE_REQUEST_OF_COMMIT,
    LOSE_REQUESTS_TO_CONTROLLER,
    RESET_PEERS_OF_CONTROLLER,
)
from chaos.faults.pauses import PAUSE_CONTROLLER, PAUSE_CONTROLLER_BEFORE_COMMIT
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
from chaos.workloads.bursts import BURSTS
from chaos.workloads.controllers_broker import CONTROLLERS_BROKER
from chaos.workloads.one_object import ONE_OBJECT
from chaos.workloads.one_topic import ONE_TOPIC
from chaos.workloads.topics import TOPICS

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


_STEPS: Final = (
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
    Step(fault=LOSE_REQUESTS_TO_CONTROLLER, after=10, hold=Sessions(2.0)),
    Step(fault=LOSE_REPLIES_OF_CONTROLLER, after=10, hold=Sessions(2.0)),
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
    draw=Draw(5, _STEPS),
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

SCENARIOS: Final[tuple[Scenario, ...]] = (
    SAME_NAME_THREE_BROKERS,
    CHANGES_OF_ONE_OBJECT,
    CASCADE,
    RANDOM_FAULTS,
    QUIET_SEA,
    CANARY,
)
