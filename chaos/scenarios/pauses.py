"""Scenarios in which a controller's process is paused, perhaps until its successor is elected."""

from __future__ import annotations

from typing import Final

from chaos.faults.kills import KILL_CONTROLLER
from chaos.faults.pauses import BLOCK_CONTROLLER, PAUSE_CONTROLLER, PAUSE_CONTROLLER_BEFORE_COMMIT
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Sessions, Step, Topology
from chaos.workloads.topics import CONTROLLERS_BROKER, MANY_TOPICS, TOPICS

CONTROLLER_PAUSE_PAST_SESSION = Scenario(
    name="controller_pause_past_session",
    aim="A controller that was paused until its session expired writes nothing when it resumes.",
    bug="KAFKA-6082, KAFKA-1096: a superseded controller continues to write to ZooKeeper",
    catches=Catch(bugs=("fence_off", "retry_across_sessions"), found_by=("W1", "W2", "W3")),
    workload=TOPICS,
    steps=(Step(fault=PAUSE_CONTROLLER, hold=AnotherController()),),
    expects=Expectation(elections=(1, 1)),
)

PAUSE_UNDER_LOAD = Scenario(
    name="pause_under_load",
    aim="A controller with a full queue writes nothing more after a pause in which its session "
    "expired.",
    bug="KAFKA-1096: a superseded controller adopts the new epoch and executes its queue",
    catches=Catch(bugs=("fence_off", "retry_across_sessions"), found_by=("W1", "W2", "W3")),
    workload=MANY_TOPICS,
    steps=(Step(fault=PAUSE_CONTROLLER, after=100, hold=AnotherController(), times=2),),
    after=200,
    expects=Expectation(elections=(2, 2)),
)

CONTROLLER_PAUSE_WITHIN_SESSION = Scenario(
    name="controller_pause_within_session",
    aim="A pause shorter than the session timeout causes no election and no unknown outcome.",
    bug="false failovers: a controller resigns although its session is alive",
    catches=Catch(bugs=("resigns_when_late",), found_by=("elections; expected 0 to 0",)),
    workload=TOPICS,
    steps=(Step(fault=PAUSE_CONTROLLER, hold=Sessions(0.4)),),
    expects=Expectation(elections=(0, 0), open_max=0),
)

CONTROLLER_PAUSE_AT_THE_EDGE = Scenario(
    name="controller_pause_at_the_edge",
    aim="After a pause of about the session timeout, exactly one controller is active.",
    bug="W1, K7: two active controllers",
    catches=Catch(bugs=("fence_off", "retry_across_sessions"), found_by=("W1", "K7")),
    workload=TOPICS,
    steps=(Step(fault=PAUSE_CONTROLLER, hold=Sessions(1.1), times=3),),
    expects=Expectation(elections=(0, 3)),
)

PAUSE_BEFORE_COMMIT = Scenario(
    name="pause_before_commit",
    aim="A controller paused just before a commit cannot write after its successor's election.",
    bug="KAFKA-6082: a former controller writes without a check of the epoch",
    catches=Catch(bugs=("fence_off", "retry_across_sessions"), found_by=("W1", "W2", "W3")),
    workload=TOPICS,
    steps=(Step(fault=PAUSE_CONTROLLER_BEFORE_COMMIT, hold=AnotherController(), times=3),),
    expects=Expectation(elections=(3, 4)),
)

STARVED_CONTROLLER = Scenario(
    name="starved_controller",
    aim="A controller stays active, although it is paused briefly twenty times.",
    bug="unnecessary elections; a hang",
    catches=Catch(bugs=("resigns_when_late",), found_by=("elections; expected 0 to 0",)),
    workload=TOPICS,
    steps=(Step(fault=PAUSE_CONTROLLER, after=8, hold=Sessions(0.1), times=20),),
    expects=Expectation(elections=(0, 0), open_max=0),
)

BLOCKED_EVENT_LOOP = Scenario(
    name="blocked_event_loop",
    aim="A controller whose event loop is blocked is replaced, and writes nothing afterwards.",
    bug="KAFKA-13407: a controller keeps its session alive, although it does not work",
    catches=Catch(bugs=("pings_while_blocked",), found_by=("No controller became active",)),
    workload=TOPICS,
    steps=(Step(fault=BLOCK_CONTROLLER, hold=AnotherController()),),
    expects=Expectation(elections=(1, 2)),
    not_simulated="a simulated process has no threads besides its event loop",
)

THERE_AND_BACK = Scenario(
    name="there_and_back",
    aim="Acknowledged deletions are kept when an earlier controller is elected again.",
    bug="KAFKA-5310, KAFKA-2300, KAFKA-12315: state of an earlier term is used again",
    catches=Catch(bugs=("reuses_image",), found_by=("W3", "W7")),
    workload=TOPICS,
    steps=(
        Step(fault=PAUSE_CONTROLLER, hold=AnotherController()),
        Step(fault=KILL_CONTROLLER, hold=AnotherController()),
    ),
    # Two consecutive terms never have the same controller. With three brokers, at least one of the
    # five terms therefore belongs to a broker that was paused as the controller of an earlier term.
    rounds=2,
    expects=Expectation(elections=(4, 4)),
)

# The controller is paused just before a commit. It sends the commit after its successor's
# election. All clients send their requests to the controller's broker. If they used other brokers,
# these would resend the requests of this commit to the successor, which would execute them.
# ZooKeeper would then reject the commit, for example because a topic exists.
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
    CONTROLLER_PAUSE_PAST_SESSION,
    PAUSE_UNDER_LOAD,
    CONTROLLER_PAUSE_WITHIN_SESSION,
    CONTROLLER_PAUSE_AT_THE_EDGE,
    PAUSE_BEFORE_COMMIT,
    STARVED_CONTROLLER,
    BLOCKED_EVENT_LOOP,
    THERE_AND_BACK,
    CANARY,
)
