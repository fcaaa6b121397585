"""Scenarios in which a process of a node ends."""

from __future__ import annotations

from typing import Final

from chaos.faults.kills import (
    KILL_BROKER,
    KILL_CONTROLLER,
    KILL_CONTROLLER_BEFORE_REPLY,
    KILL_CONTROLLER_WHILE_LOADING,
    STOP_CONTROLLER,
)
from chaos.scenario import (
    Acknowledged,
    AnotherController,
    Catch,
    Expectation,
    Scenario,
    Step,
    Topology,
)
from chaos.workloads.every_write_api import EVERY_WRITE_API
from chaos.workloads.topics import LARGE_REQUESTS, TOPICS

CONTROLLER_KILLED = Scenario(
    name="controller_killed",
    aim="Requests of every write API are executed once, although controllers are killed.",
    bug="a response before the commit; a resent request that is executed again",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("D3",)),
    workload=EVERY_WRITE_API,
    # A killed broker restarts before its old session expires, and registers again as soon as that
    # session has expired. It is hardly ever unregistered, so partitions can be moved to it.
    topology=Topology(session_timeout_ms=6000),
    steps=(Step(fault=KILL_CONTROLLER, after=60, times=3),),
    expects=Expectation(elections=(3, 3)),
)

KILL_IN_LARGE_REQUEST = Scenario(
    name="kill_in_large_request",
    aim="A request for 250 topics creates each topic once, although the controller is killed.",
    bug="a topic is created without its configs; a client gets TOPIC_ALREADY_EXISTS for its own "
    "topic",
    catches=Catch(bugs=("omits_last_result",), found_by=("D7",)),
    workload=LARGE_REQUESTS,
    steps=(Step(fault=KILL_CONTROLLER, after=4, hold=AnotherController()),),
    after=4,
    expects=Expectation(elections=(1, 1)),
)

KILL_BETWEEN_COMMIT_AND_REPLY = Scenario(
    name="kill_between_commit_and_reply",
    aim="If a kill prevents the response, the write is executed once and its client gets the "
    "result.",
    bug="a resent request is executed again, or it gets TOPIC_ALREADY_EXISTS for its own topic",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("D2", "F7")),
    workload=TOPICS,
    steps=(Step(fault=KILL_CONTROLLER_BEFORE_REPLY, hold=AnotherController(), times=3),),
    expects=Expectation(elections=(3, 4)),
)

KILL_WHILE_LOADING = Scenario(
    name="kill_while_loading",
    aim="If a controller is killed before it has loaded its state, another controller takes over.",
    bug="KAFKA-4442: an election that ends halfway leaves no controller",
    catches=Catch(bugs=("splits_the_election",), found_by=("W4",)),
    workload=TOPICS,
    steps=(Step(fault=KILL_CONTROLLER_WHILE_LOADING, times=3),),
    expects=Expectation(elections=(3, None)),
)

POLITE_STOP = Scenario(
    name="polite_stop",
    aim="When a controller is stopped, the next controller is elected before the session timeout.",
    bug="KAFKA-1663, KAFKA-9189: a controller that cannot shut down",
    catches=Catch(bugs=("leaves_sessions_open",), found_by=("no operation succeeded for",)),
    workload=TOPICS,
    steps=(Step(fault=STOP_CONTROLLER, hold=AnotherController()),),
    expects=Expectation(elections=(1, 1), gap_max_s=4.0),
    topology=Topology(session_timeout_ms=6000),
)

BROKER_KILLED = Scenario(
    name="broker_killed",
    aim="Requests in flight at a killed broker are executed once or not at all.",
    bug="D3: an effect without a recorded outcome",
    catches=Catch(bugs=("forgets_restarted_brokers",), found_by=("no controller became active",)),
    workload=TOPICS,
    steps=(Step(fault=KILL_BROKER, hold=Acknowledged(20), times=3),),
    expects=Expectation(elections=(0, 0)),
)

SCENARIOS: Final[tuple[Scenario, ...]] = (
    CONTROLLER_KILLED,
    KILL_IN_LARGE_REQUEST,
    KILL_BETWEEN_COMMIT_AND_REPLY,
    KILL_WHILE_LOADING,
    POLITE_STOP,
    BROKER_KILLED,
)
