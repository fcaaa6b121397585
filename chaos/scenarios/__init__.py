"""Every scenario. To add one: a file here, and a line in SCENARIOS."""

from __future__ import annotations

from typing import Final

from chaos.scenario import Scenario
from chaos.scenarios.answers_lost import ANSWERS_LOST
from chaos.scenarios.blocked_event_loop import BLOCKED_EVENT_LOOP
from chaos.scenarios.broker_controller_cut import BROKER_CONTROLLER_CUT
from chaos.scenarios.broker_killed import BROKER_KILLED
from chaos.scenarios.broker_zookeeper_cut import BROKER_ZOOKEEPER_CUT
from chaos.scenarios.canary import CANARY
from chaos.scenarios.cascade import CASCADE
from chaos.scenarios.changes_of_one_object import CHANGES_OF_ONE_OBJECT
from chaos.scenarios.controller_killed import CONTROLLER_KILLED
from chaos.scenarios.controller_pause_at_the_edge import CONTROLLER_PAUSE_AT_THE_EDGE
from chaos.scenarios.controller_pause_past_session import CONTROLLER_PAUSE_PAST_SESSION
from chaos.scenarios.controller_pause_within_session import CONTROLLER_PAUSE_WITHIN_SESSION
from chaos.scenarios.controller_znode_deleted import CONTROLLER_ZNODE_DELETED
from chaos.scenarios.controller_zookeeper_cut import CONTROLLER_ZOOKEEPER_CUT
from chaos.scenarios.ensemble_rolling_restart import ENSEMBLE_ROLLING_RESTART
from chaos.scenarios.full_disk_of_controller import FULL_DISK_OF_CONTROLLER
from chaos.scenarios.full_disk_of_zookeeper import FULL_DISK_OF_ZOOKEEPER
from chaos.scenarios.hundred_failovers import HUNDRED_FAILOVERS
from chaos.scenarios.kill_between_commit_and_answer import KILL_BETWEEN_COMMIT_AND_ANSWER
from chaos.scenarios.kill_in_large_request import KILL_IN_LARGE_REQUEST
from chaos.scenarios.kill_while_loading import KILL_WHILE_LOADING
from chaos.scenarios.malformed_envelopes import MALFORMED_ENVELOPES
from chaos.scenarios.member_returns_empty import MEMBER_RETURNS_EMPTY
from chaos.scenarios.mixed_requests_in_failover import MIXED_REQUESTS_IN_FAILOVER
from chaos.scenarios.pause_before_commit import PAUSE_BEFORE_COMMIT
from chaos.scenarios.pause_under_load import PAUSE_UNDER_LOAD
from chaos.scenarios.polite_stop import POLITE_STOP
from chaos.scenarios.principals_in_failover import PRINCIPALS_IN_FAILOVER
from chaos.scenarios.quiet_sea import QUIET_SEA
from chaos.scenarios.quorum_lost import QUORUM_LOST
from chaos.scenarios.random_faults import RANDOM_FAULTS
from chaos.scenarios.reads_in_failover import READS_IN_FAILOVER
from chaos.scenarios.reply_of_commit_lost import REPLY_OF_COMMIT_LOST
from chaos.scenarios.request_of_commit_lost import REQUEST_OF_COMMIT_LOST
from chaos.scenarios.requests_lost import REQUESTS_LOST
from chaos.scenarios.requests_time_out import REQUESTS_TIME_OUT
from chaos.scenarios.resets import RESETS
from chaos.scenarios.same_name_three_brokers import SAME_NAME_THREE_BROKERS
from chaos.scenarios.session_stolen_in_large_request import SESSION_STOLEN_IN_LARGE_REQUEST
from chaos.scenarios.sessions_flap import SESSIONS_FLAP
from chaos.scenarios.slow_fsync import SLOW_FSYNC
from chaos.scenarios.slow_link import SLOW_LINK
from chaos.scenarios.starved_controller import STARVED_CONTROLLER
from chaos.scenarios.there_and_back import THERE_AND_BACK
from chaos.scenarios.wall_clock_jumps import WALL_CLOCK_JUMPS
from chaos.scenarios.zookeeper_leader_killed import ZOOKEEPER_LEADER_KILLED
from chaos.scenarios.zookeeper_leader_paused import ZOOKEEPER_LEADER_PAUSED

SCENARIOS: Final[tuple[Scenario, ...]] = (
    CONTROLLER_PAUSE_PAST_SESSION,
    PAUSE_UNDER_LOAD,
    CONTROLLER_PAUSE_WITHIN_SESSION,
    CONTROLLER_PAUSE_AT_THE_EDGE,
    PAUSE_BEFORE_COMMIT,
    KILL_IN_LARGE_REQUEST,
    KILL_BETWEEN_COMMIT_AND_ANSWER,
    KILL_WHILE_LOADING,
    CONTROLLER_KILLED,
    SESSION_STOLEN_IN_LARGE_REQUEST,
    SESSIONS_FLAP,
    THERE_AND_BACK,
    POLITE_STOP,
    STARVED_CONTROLLER,
    BLOCKED_EVENT_LOOP,
    FULL_DISK_OF_CONTROLLER,
    REPLY_OF_COMMIT_LOST,
    REQUEST_OF_COMMIT_LOST,
    BROKER_CONTROLLER_CUT,
    REQUESTS_TIME_OUT,
    ANSWERS_LOST,
    REQUESTS_LOST,
    CONTROLLER_ZOOKEEPER_CUT,
    BROKER_ZOOKEEPER_CUT,
    RESETS,
    SLOW_LINK,
    MALFORMED_ENVELOPES,
    ZOOKEEPER_LEADER_KILLED,
    ZOOKEEPER_LEADER_PAUSED,
    QUORUM_LOST,
    FULL_DISK_OF_ZOOKEEPER,
    SLOW_FSYNC,
    MEMBER_RETURNS_EMPTY,
    ENSEMBLE_ROLLING_RESTART,
    CONTROLLER_ZNODE_DELETED,
    BROKER_KILLED,
    SAME_NAME_THREE_BROKERS,
    CHANGES_OF_ONE_OBJECT,
    MIXED_REQUESTS_IN_FAILOVER,
    PRINCIPALS_IN_FAILOVER,
    READS_IN_FAILOVER,
    WALL_CLOCK_JUMPS,
    CASCADE,
    HUNDRED_FAILOVERS,
    RANDOM_FAULTS,
    QUIET_SEA,
    CANARY,
)
