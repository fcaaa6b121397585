"""Scenarios in which sessions end, or members of ZooKeeper fail."""

from __future__ import annotations

from typing import Final

from chaos.faults.zookeeper import (
    DELETE_CONTROLLER_ZNODE,
    EMPTY_ZOOKEEPER_LEADER,
    EXPIRE_CONTROLLER,
    KILL_ZOOKEEPER_LEADER,
    PAUSE_QUORUM,
    PAUSE_ZOOKEEPER_LEADER,
)
from chaos.scenario import Acknowledged, Catch, Expectation, Scenario, Sessions, Step, Topology
from chaos.workloads.topics import LARGE_REQUESTS, TOPICS

SESSIONS_FLAP = Scenario(
    name="sessions_flap",
    aim="After five expired sessions, one controller is active and no write is lost.",
    bug="KAFKA-4229: a node whose session expired takes part in no further election",
    catches=Catch(bugs=("acts_after_resigning",), found_by=("W7",)),
    workload=TOPICS,
    steps=(Step(fault=EXPIRE_CONTROLLER, after=8, times=5),),
    expects=Expectation(elections=(5, 10)),
)

SESSION_STOLEN_IN_LARGE_REQUEST = Scenario(
    name="session_stolen_in_large_request",
    aim="If the controller's session ends during a large request, the next controller completes "
    "the request.",
    bug="KAFKA-4447, KAFKA-10193, KAFKA-6517: a former controller executes or forgets its "
    "queue, or hangs",
    catches=Catch(bugs=("deletes_successors_znode",), found_by=("W5", "L7")),
    workload=LARGE_REQUESTS,
    steps=(Step(fault=EXPIRE_CONTROLLER, after=4),),
    after=4,
    expects=Expectation(elections=(1, 2)),
)

CONTROLLER_ZNODE_DELETED = Scenario(
    name="controller_znode_deleted",
    aim="If another session deletes /controller, the judge reports it and the controller resigns.",
    bug="a controller that stays active although its /controller is gone",
    catches=Catch(bugs=("fence_off", "never_superseded"), found_by=("W2", "K7")),
    workload=TOPICS,
    steps=(Step(fault=DELETE_CONTROLLER_ZNODE, hold=Acknowledged(8)),),
    expects=Expectation(elections=(1, 2), violates=("W5", "W6")),
)

ZOOKEEPER_LEADER_KILLED = Scenario(
    name="zookeeper_leader_killed",
    aim="When ZooKeeper's leader is killed, no write is lost and at most one controller is "
    "elected.",
    bug="KAFKA-4442; writes that are acknowledged before the quorum has them",
    catches=Catch(bugs=("assumes_commit",), found_by=("K4",)),
    workload=TOPICS,
    topology=Topology(zookeeper_members=3),
    steps=(Step(fault=KILL_ZOOKEEPER_LEADER, hold=Acknowledged(20)),),
    expects=Expectation(elections=(0, 1)),
    not_simulated="the simulated ZooKeeper has one member",
)

ZOOKEEPER_LEADER_PAUSED = Scenario(
    name="zookeeper_leader_paused",
    aim="When a paused leader of ZooKeeper resumes, only uncommitted writes are dropped.",
    bug="the judge trusts the log of one member",
    catches=Catch(bugs=("assumes_commit",), found_by=("K4",)),
    workload=TOPICS,
    topology=Topology(zookeeper_members=3),
    steps=(Step(fault=PAUSE_ZOOKEEPER_LEADER, hold=Acknowledged(20)),),
    expects=Expectation(elections=(0, 2)),
    not_simulated="the simulated ZooKeeper has one member",
)

QUORUM_LOST = Scenario(
    name="quorum_lost",
    aim="No write is acknowledged without a quorum; writes succeed again when the quorum is back.",
    bug="D1: an acknowledgement without a commit",
    catches=Catch(bugs=("assumes_commit",), found_by=("K4",)),
    workload=TOPICS,
    topology=Topology(zookeeper_members=3),
    steps=(Step(fault=PAUSE_QUORUM, hold=Sessions(2)),),
    expects=Expectation(elections=(0, 2)),
    not_simulated="the simulated ZooKeeper has one member",
)

MEMBER_RETURNS_EMPTY = Scenario(
    name="member_returns_empty",
    aim="If ZooKeeper's leader restarts without its data, it gets a snapshot and no write is lost.",
    bug="the judge reports lost writes because a member's log begins late",
    catches=Catch(bugs=("assumes_commit",), found_by=("K4",)),
    workload=TOPICS,
    topology=Topology(zookeeper_members=3),
    steps=(Step(fault=EMPTY_ZOOKEEPER_LEADER, hold=Acknowledged(20)),),
    expects=Expectation(elections=(0, 1)),
    not_simulated="the simulated ZooKeeper has one member",
)

ENSEMBLE_ROLLING_RESTART = Scenario(
    name="ensemble_rolling_restart",
    aim="No write is lost when ZooKeeper's leader is killed three times.",
    bug="sessions that do not move to another member",
    catches=Catch(bugs=("stays_at_one_member",), found_by=("were not acknowledged within",)),
    workload=TOPICS,
    topology=Topology(zookeeper_members=3),
    steps=(Step(fault=KILL_ZOOKEEPER_LEADER, hold=Acknowledged(10), times=3),),
    expects=Expectation(elections=(0, 3)),
    not_simulated="the simulated ZooKeeper has one member",
)

SCENARIOS: Final[tuple[Scenario, ...]] = (
    SESSIONS_FLAP,
    SESSION_STOLEN_IN_LARGE_REQUEST,
    CONTROLLER_ZNODE_DELETED,
    ZOOKEEPER_LEADER_KILLED,
    ZOOKEEPER_LEADER_PAUSED,
    QUORUM_LOST,
    MEMBER_RETURNS_EMPTY,
    ENSEMBLE_ROLLING_RESTART,
)
