"""Every fault. To add one: a file here, and a line in FAULTS."""

from __future__ import annotations

from typing import Final

from chaos.fault import Fault
from chaos.faults.block_controller import BLOCK_CONTROLLER
from chaos.faults.corrupt_envelope import CORRUPT_ENVELOPE
from chaos.faults.cut_broker_from_zookeeper import CUT_BROKER_FROM_ZOOKEEPER
from chaos.faults.cut_controller_from_peers import CUT_CONTROLLER_FROM_PEERS
from chaos.faults.cut_controller_from_zookeeper import CUT_CONTROLLER_FROM_ZOOKEEPER
from chaos.faults.delete_controller_znode import DELETE_CONTROLLER_ZNODE
from chaos.faults.empty_zookeeper_leader import EMPTY_ZOOKEEPER_LEADER
from chaos.faults.expire_controller import EXPIRE_CONTROLLER
from chaos.faults.fill_disk_of_controller import FILL_DISK_OF_CONTROLLER
from chaos.faults.fill_disk_of_zookeeper import FILL_DISK_OF_ZOOKEEPER
from chaos.faults.kill_broker import KILL_BROKER
from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.faults.kill_controller_before_answer import KILL_CONTROLLER_BEFORE_ANSWER
from chaos.faults.kill_controller_while_loading import KILL_CONTROLLER_WHILE_LOADING
from chaos.faults.kill_zookeeper_leader import KILL_ZOOKEEPER_LEADER
from chaos.faults.lose_replies_of_controller import LOSE_REPLIES_OF_CONTROLLER
from chaos.faults.lose_reply_of_commit import LOSE_REPLY_OF_COMMIT
from chaos.faults.lose_request_of_commit import LOSE_REQUEST_OF_COMMIT
from chaos.faults.lose_requests_to_controller import LOSE_REQUESTS_TO_CONTROLLER
from chaos.faults.move_clock_of_controller import MOVE_CLOCK_OF_CONTROLLER
from chaos.faults.pause_controller import PAUSE_CONTROLLER
from chaos.faults.pause_controller_before_commit import PAUSE_CONTROLLER_BEFORE_COMMIT
from chaos.faults.pause_quorum import PAUSE_QUORUM
from chaos.faults.pause_zookeeper_leader import PAUSE_ZOOKEEPER_LEADER
from chaos.faults.reset_peers_of_controller import RESET_PEERS_OF_CONTROLLER
from chaos.faults.slow_fsync_of_zookeeper import SLOW_FSYNC_OF_ZOOKEEPER
from chaos.faults.slow_peers_of_controller import SLOW_PEERS_OF_CONTROLLER
from chaos.faults.stop_controller import STOP_CONTROLLER

FAULTS: Final[tuple[Fault, ...]] = (
    KILL_CONTROLLER,
    STOP_CONTROLLER,
    KILL_CONTROLLER_BEFORE_ANSWER,
    KILL_CONTROLLER_WHILE_LOADING,
    PAUSE_CONTROLLER,
    PAUSE_CONTROLLER_BEFORE_COMMIT,
    BLOCK_CONTROLLER,
    EXPIRE_CONTROLLER,
    DELETE_CONTROLLER_ZNODE,
    KILL_BROKER,
    MOVE_CLOCK_OF_CONTROLLER,
    FILL_DISK_OF_CONTROLLER,
    CUT_CONTROLLER_FROM_PEERS,
    LOSE_REQUESTS_TO_CONTROLLER,
    LOSE_REPLIES_OF_CONTROLLER,
    RESET_PEERS_OF_CONTROLLER,
    SLOW_PEERS_OF_CONTROLLER,
    CORRUPT_ENVELOPE,
    CUT_CONTROLLER_FROM_ZOOKEEPER,
    CUT_BROKER_FROM_ZOOKEEPER,
    LOSE_REPLY_OF_COMMIT,
    LOSE_REQUEST_OF_COMMIT,
    KILL_ZOOKEEPER_LEADER,
    PAUSE_ZOOKEEPER_LEADER,
    EMPTY_ZOOKEEPER_LEADER,
    PAUSE_QUORUM,
    FILL_DISK_OF_ZOOKEEPER,
    SLOW_FSYNC_OF_ZOOKEEPER,
)
