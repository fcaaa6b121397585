"""After five faults, drawn by the seed, no write is lost or repeated."""

from __future__ import annotations

from typing import Final

from chaos.faults.cut_broker_from_zookeeper import CUT_BROKER_FROM_ZOOKEEPER
from chaos.faults.cut_controller_from_peers import CUT_CONTROLLER_FROM_PEERS
from chaos.faults.cut_controller_from_zookeeper import CUT_CONTROLLER_FROM_ZOOKEEPER
from chaos.faults.expire_controller import EXPIRE_CONTROLLER
from chaos.faults.kill_broker import KILL_BROKER
from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.faults.lose_replies_of_controller import LOSE_REPLIES_OF_CONTROLLER
from chaos.faults.lose_reply_of_commit import LOSE_REPLY_OF_COMMIT
from chaos.faults.lose_request_of_commit import LOSE_REQUEST_OF_COMMIT
from chaos.faults.lose_requests_to_controller import LOSE_REQUESTS_TO_CONTROLLER
from chaos.faults.pause_controller import PAUSE_CONTROLLER
from chaos.faults.reset_peers_of_controller import RESET_PEERS_OF_CONTROLLER
from chaos.faults.stop_controller import STOP_CONTROLLER
from chaos.scenario import (
    Acknowledged,
    AnotherController,
    Catch,
    Draw,
    Expectation,
    Scenario,
    Sessions,
    Step,
)
from chaos.workloads.bursts import BURSTS

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
