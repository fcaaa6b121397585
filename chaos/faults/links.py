"""Faults of the links between brokers, and between brokers and ZooKeeper."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from chaos.fault import Fault, Record, Target, TargetWithBytes

_DELAY_S: Final = 0.3


# --- Between brokers and the controller ----------------------------------------------------------


@asynccontextmanager
async def _cut_controller_from_peers(target: Target, record: Record) -> AsyncIterator[None]:
    broker = await target.controller()
    with (
        record(broker),
        target.network.cut_from_peers(broker, requests=True, replies=True),
    ):
        yield


@asynccontextmanager
async def _cut_requests_to_controller(target: Target, record: Record) -> AsyncIterator[None]:
    broker = await target.controller()
    with (
        record(broker),
        target.network.cut_from_peers(broker, requests=True, replies=False),
    ):
        yield


@asynccontextmanager
async def _cut_replies_of_controller(target: Target, record: Record) -> AsyncIterator[None]:
    broker = await target.controller()
    with (
        record(broker),
        target.network.cut_from_peers(broker, requests=False, replies=True),
    ):
        yield


@asynccontextmanager
async def _reset_peers_of_controller(target: Target, record: Record) -> AsyncIterator[None]:
    broker = await target.controller()
    with record(broker):
        await target.network.reset_peers(broker)
        yield


@asynccontextmanager
async def _slow_peers_of_controller(target: Target, record: Record) -> AsyncIterator[None]:
    broker = await target.controller()
    with record(broker), target.network.slow_peers(broker, _DELAY_S):
        yield


@asynccontextmanager
async def _corrupt_envelope(target: TargetWithBytes, record: Record) -> AsyncIterator[None]:
    broker = await target.controller()
    with record(broker):
        await target.corrupt_envelope(broker)
        yield


# --- Between brokers and ZooKeeper ---------------------------------------------------------------


@asynccontextmanager
async def _cut_controller_from_zookeeper(target: Target, record: Record) -> AsyncIterator[None]:
    broker = await target.controller()
    with record(broker), target.network.cut_from_zookeeper(broker):
        yield


@asynccontextmanager
async def _cut_broker_from_zookeeper(target: Target, record: Record) -> AsyncIterator[None]:
    controller = await target.controller()
    broker = next(node for node in target.brokers if node != controller)
    with record(broker), target.network.cut_from_zookeeper(broker):
        yield


@asynccontextmanager
async def _lose_reply_of_commit(target: Target, record: Record) -> AsyncIterator[None]:
    broker = await target.controller()
    with record(broker):
        await target.network.lose_commit(broker, reply=True)
        yield


@asynccontextmanager
async def _lose_request_of_commit(target: Target, record: Record) -> AsyncIterator[None]:
    broker = await target.controller()
    with record(broker):
        await target.network.lose_commit(broker, reply=False)
        yield


CUT_CONTROLLER_FROM_PEERS = Fault(
    name="cut_controller_from_peers",
    does="Nothing passes on the gRPC channels between the controller and the other brokers.",
    action="cut_from_peers",
    effect="envelopes_were_held",
    inject=_cut_controller_from_peers,
    breaks_links=True,
)
CUT_REQUESTS_TO_CONTROLLER = Fault(
    name="cut_requests_to_controller",
    does="Nothing passes on the gRPC channels from the other brokers to the controller.",
    action="cut_requests",
    effect="envelopes_were_held",
    inject=_cut_requests_to_controller,
    breaks_links=True,
)
CUT_REPLIES_OF_CONTROLLER = Fault(
    name="cut_replies_of_controller",
    does="Replies and metadata updates of the controller do not reach the other brokers; their "
    "requests still reach it.",
    action="cut_replies",
    effect="envelopes_were_held",
    inject=_cut_replies_of_controller,
    breaks_links=True,
)
RESET_PEERS_OF_CONTROLLER = Fault(
    name="reset_peers_of_controller",
    does="The connections of the other brokers to the controller are reset.",
    action="reset_peers",
    effect="envelopes_were_held",
    inject=_reset_peers_of_controller,
    breaks_links=True,
)
SLOW_PEERS_OF_CONTROLLER = Fault(
    name="slow_peers_of_controller",
    does="Messages from other brokers to the controller arrive at least 300 ms late.",
    action="slow_peers",
    effect="envelopes_were_slow",
    inject=_slow_peers_of_controller,
    breaks_links=True,
)
# The scenario needs `bridgehead.grpc.tls=false`: in encrypted bytes, the proxy finds no Envelope.
CORRUPT_ENVELOPE = Fault(
    name="corrupt_envelope",
    does="An Envelope reaches the controller with overwritten bytes.",
    action="corrupt_envelope",
    effect="envelopes_broke_off",
    inject=_corrupt_envelope,
    needs=TargetWithBytes,
    breaks_links=True,
)
CUT_CONTROLLER_FROM_ZOOKEEPER = Fault(
    name="cut_controller_from_zookeeper",
    does="Nothing passes between the controller's process and ZooKeeper.",
    action="cut_from_zookeeper",
    effect="session_ended",
    inject=_cut_controller_from_zookeeper,
    breaks_links=True,
)
CUT_BROKER_FROM_ZOOKEEPER = Fault(
    name="cut_broker_from_zookeeper",
    does="Nothing passes between ZooKeeper and a broker that is not the controller.",
    action="cut_from_zookeeper",
    effect="session_ended",
    inject=_cut_broker_from_zookeeper,
    breaks_links=True,
)
LOSE_REPLY_OF_COMMIT = Fault(
    name="lose_reply_of_commit",
    does="ZooKeeper's reply to a write of the controller is lost, and the connection is closed.",
    action="lose_commit",
    effect="commit_was_unknown",
    inject=_lose_reply_of_commit,
    breaks_links=True,
)
LOSE_REQUEST_OF_COMMIT = Fault(
    name="lose_request_of_commit",
    does="A write of the controller to ZooKeeper is lost, and the connection is closed.",
    action="lose_commit",
    effect="commit_was_unknown",
    inject=_lose_request_of_commit,
    breaks_links=True,
)

FAULTS: Final[tuple[Fault, ...]] = (
    CUT_CONTROLLER_FROM_PEERS,
    CUT_REQUESTS_TO_CONTROLLER,
    CUT_REPLIES_OF_CONTROLLER,
    RESET_PEERS_OF_CONTROLLER,
    SLOW_PEERS_OF_CONTROLLER,
    CORRUPT_ENVELOPE,
    CUT_CONTROLLER_FROM_ZOOKEEPER,
    CUT_BROKER_FROM_ZOOKEEPER,
    LOSE_REPLY_OF_COMMIT,
    LOSE_REQUEST_OF_COMMIT,
)
