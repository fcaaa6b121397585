"""Processes that are killed or stopped."""

from __future__ import annotations

from typing import Final

from chaos.faults.kills import (
    KILL_BROKER,
    KILL_CONTROLLER,
    KILL_CONTROLLER_BEFORE_ANSWER,
    KILL_CONTROLLER_WHILE_LOADING,
    STOP_CONTROLLER,
)
from chaos.faults.pauses import PAUSE_CONTROLLER
from chaos.faults.zookeeper import EXPIRE_CONTROLLER
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
from chaos.workloads.forwarded_principals import FORWARDED_PRINCIPALS
from chaos.workloads.large_requests import LARGE_REQUESTS
from chaos.workloads.mixed_requests import MIXED_REQUESTS
from chaos.workloads.read_after_write import READ_AFTER_WRITE
from chaos.workloads.topics import TOPICS

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


KILL_BETWEEN_COMMIT_AND_ANSWER = Scenario(
    name="kill_between_commit_and_answer",
    aim="If a kill prevents the response, the write is executed once and its client gets the "
    "result.",
    bug="a resent request is executed again, or it gets TOPIC_ALREADY_EXISTS for its own topic",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("D2", "F7")),
    workload=TOPICS,
    steps=(Step(fault=KILL_CONTROLLER_BEFORE_ANSWER, hold=AnotherController(), times=3),),
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
    catches=Catch(bugs=("answer_before_applied",), found_by=("was acknowledged but not read",)),
    workload=READ_AFTER_WRITE,
    steps=(Step(fault=KILL_CONTROLLER, after=200, hold=AnotherController(), times=2),),
    expects=Expectation(elections=(2, 2)),
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

SCENARIOS: Final[tuple[Scenario, ...]] = (
    KILL_IN_LARGE_REQUEST,
    KILL_BETWEEN_COMMIT_AND_ANSWER,
    KILL_WHILE_LOADING,
    CONTROLLER_KILLED,
    POLITE_STOP,
    BROKER_KILLED,
    HUNDRED_FAILOVERS,
    PRINCIPALS_IN_FAILOVER,
    READS_IN_FAILOVER,
    MIXED_REQUESTS_IN_FAILOVER,
)
