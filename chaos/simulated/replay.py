"""Replays a path through the specification on simulated nodes, message by message.

Nodes 1 and 2 are candidates for controller; the other nodes are the brokers of requests. Every
message that a step of `spec/Paths.tla` names waits at the end of its link until the path has this
step: Envelopes, replies, multis with outcomes, ZooKeeper's replies to them. So do candidacies,
loads, attempts to forward, submissions to the controller's loop, floors, refreshes of brokers and
prunings, and metadata updates if the path has a step for them. Everything else happens at once.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path as FilePath
from typing import Any, Final

import orjson

from bridgehead.cluster import RunSettings
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from bridgehead.raw_client.asynchronous import AsyncConnection
from bridgehead.raw_client.codec import decode_message, encode_message
from chaos.simulated.network import Direction, Message, NetworkLoop, SimulatedLink
from chaos.simulated.nodes import SimulatedNode
from chaos.simulated.sealed_run import SealedRun
from chaos.simulated.virtual_time import virtual_host
from chaos.simulated.zookeeper import decode_operation
from chaos.simulated.zookeeper_session import Multi, SimulatedSession
from chaos.workloads.topics import creation, deletion
from cluster_model.znodes.layout import (
    ControllerEpochZnode,
    ControllerZnode,
    DeletionMarkerZnode,
    OutcomeZnode,
    TopicZnode,
)
from cluster_model.znodes.operations import Create, Delete, Operation
from controller.requests.pending_request import NOT_CONTROLLER, PendingRequest
from controller.services import ControllerState
from controller.store.port import Fence
from controller.store.zookeeper import ZooKeeperStore
from controller.term.term import Term
from event_log.commits import CommitOutcome
from judge.evidence.commit_lines import commit_line
from node.collaborators import Collaborators
from zookeeper_client.wire import MultiResult

_SESSION_TIMEOUT_MS: Final = 6_000
_DELAY_S: Final = 0.001
_POLL_S: Final = 0.002
_SETTLED_S: Final = 0.03  # longer than any chain of messages that no step names
_WITHIN_S: Final = 12.0
_NO_RESULT: Final = {"how": "in progress", "errors": []}
_GONE: Final = {"how": "gone", "errors": []}
_REJECTED: Final = {"how": "rejected", "errors": []}
_RATE: Final = 1_000_000  # plus the number of the request that sets it
_QUOTAS: Final = "/config/users/"
_ERRORS: Final = {
    int(ErrorCode.NONE): "ok",
    int(ErrorCode.TOPIC_ALREADY_EXISTS): "exists",
    int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION): "unknown",
}
_VERDICTS: Final = {None: "ok", 0: "fenced", 1: "counted"}  # by the operation that failed

Step = tuple[Any, ...]


class DepartedError(Exception):
    """The nodes did not do the next step of the path. The message names it."""


@dataclass(slots=True)
class Replayed:
    """The end of a path. `departed`: the step that the nodes did not do; "": none."""

    end: dict[str, Any]
    departed: str
    folder: FilePath
    results: list[str]  # how each request ended after everything was released


@dataclass(slots=True)
class _Sent:
    """A multi on its way to ZooKeeper. `is_heard`: its connection is not lost yet."""

    link: SimulatedLink
    execute: Multi
    connection: Any
    is_heard: bool = True


@dataclass(slots=True)
class _Attempts:
    """What the path permits so far, and what waits for a permission."""

    forwards: defaultdict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    claims: set[int] = field(default_factory=set)
    loads: set[int] = field(default_factory=set)
    prunings: set[int] = field(default_factory=set)
    refreshes: set[int] = field(default_factory=set)
    floors: dict[tuple[int, int], bool] = field(default_factory=dict)


def differences(expected: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any]:
    """Return what differs at the end of a path: for each name, the specification's value and ours.

    A request that the specification has not finished may be finished: one message carries all
    responses of a round. Incarnations are not compared, because the nodes draw them.
    """
    expected = {
        **expected,
        "outcomes": sorted(
            [broker, sequence, t] for (broker, _, sequence), t in expected["outcomes"]
        ),
        "results": [
            actual if result["how"] == "in progress" and actual["how"] == "answered" else result
            for result, actual in zip(expected["results"], seen["results"], strict=True)
        ],
    }
    replies = [*seen["replies"], *([] for _ in expected["replies"])][: len(expected["replies"])]
    seen = {**seen, "replies": replies}
    return {name: (of, seen[name]) for name, of in expected.items() if of != seen[name]}


def replay(
    steps: tuple[Step, ...],
    requests: tuple[Mapping[str, Any], ...],
    folder: FilePath,
    bugs: frozenset[str] = frozenset(),
) -> Replayed:
    """Replay a path, with seeded bugs in every node; `folder` gets the evidence.

    `requests` are those of the path's model (spec/models.py). After the path everything that was
    held is released, and the clients get their responses.
    """
    # What the nodes leave behind is never freed, so they run in a copy of this Python process.
    receives, sends = multiprocessing.Pipe(duplex=False)
    arguments = (steps, requests, folder, bugs, sends)
    process = multiprocessing.get_context("fork").Process(target=_replay_here, args=arguments)
    process.start()
    sends.close()
    try:
        replayed: Replayed = receives.recv()
    finally:
        process.join()
    return replayed


def _replay_here(
    steps: tuple[Step, ...],
    requests: tuple[Mapping[str, Any], ...],
    folder: FilePath,
    bugs: frozenset[str],
    sends: Connection,
) -> None:
    folder.mkdir(parents=True)
    logging.basicConfig(filename=folder / "nodes.log", level=logging.WARNING, force=True)
    loop = NetworkLoop(seed=0)
    loop.network.delay_s = lambda route: _DELAY_S + route.slow_s  # type: ignore[method-assign]
    gc.disable()  # see chaos.simulated.run
    with virtual_host(loop, seed=0):
        sends.send(loop.run_until_complete(_Replay(steps, requests, folder, loop, bugs).run()))
    sends.close()
    os._exit(0)  # without running what is left of the nodes


class _Replay:
    """One replay."""

    def __init__(
        self,
        steps: tuple[Step, ...],
        requests: tuple[Mapping[str, Any], ...],
        folder: FilePath,
        loop: NetworkLoop,
        bugs: frozenset[str],
    ) -> None:
        self._steps, self._requests, self._folder = steps, requests, folder
        self._loop, self._network = loop, loop.network
        # Without this step, the path says nothing about when brokers apply updates.
        self._holds_updates = any(step[0] == "ImageAdvanced" for step in steps)
        blocking = "cluster" if self._holds_updates else "controller"
        self._run = SealedRun(
            loop,
            0,
            folder,
            lambda _sentence: None,
            brokers=max(request["node"] for request in requests),
            properties={
                "zookeeper.session.timeout.ms": str(_SESSION_TIMEOUT_MS),
                "bridgehead.metadata.blocking": blocking,
            },
            settings=RunSettings(seed=0),
            seeded_bugs=bugs,
        )
        self._cluster, self._service = self._run.cluster, self._run.service
        self._cluster.extend = self._gated
        self._network.gate = self._holds
        self._may = _Attempts()
        self._is_over = False
        self._changed = asyncio.Event()
        self._at = 0
        self._epochs: dict[int, int] = {}  # by session id
        self._nodes: dict[int, int] = {}  # by epoch
        self._sent: defaultdict[int, list[_Sent]] = defaultdict(list)  # by epoch
        self._replies: defaultdict[int, list[MultiResult]] = defaultdict(list)  # by epoch
        self._inbox: defaultdict[int, list[PendingRequest]] = defaultdict(list)  # by node
        self._chosen: defaultdict[int, list[int]] = defaultdict(list)  # by node
        self._terms: dict[int, Term] = {}  # by node
        self._submit_to: dict[int, Callable[[PendingRequest], None]] = {}  # by node
        self._incarnations: dict[str, int] = {}
        self._late: dict[int, SimulatedLink] = {}  # by request
        self._blind: set[int] = set()
        self._tasks: dict[int, asyncio.Task[dict[str, Any]]] = {}  # by request
        self._starting: dict[int, asyncio.Task[None]] = {}  # by node
        self._cuts = AsyncExitStack()

    async def run(self) -> Replayed:
        """Do all steps, note the end, and let everything come to rest."""
        departed = ""
        async with self._run.sealed():
            await self._cluster.start()
            for number in self._cluster.nodes:
                self._note_life(number, 1)
            try:
                for at, step in enumerate(self._steps):
                    self._at = at
                    await getattr(self, f"_do_{step[0]}")(*step[1:])
                    await asyncio.sleep(_SETTLED_S)
            except DepartedError as error:
                departed = str(error)
            end = self._end()
            await self._release_everything()
            results = [self._tasks[n].result()["how"] for n in self._tasks if n > 0]
        return Replayed(end, departed, self._run.record.folder, results)

    async def _release_everything(self) -> None:
        self._is_over, self._network.gate = True, None
        await self._cuts.aclose()
        self._changed.set()
        for term in self._terms.values():
            term.brokers_changed()
        for number in tuple(self._inbox):
            self._submit(number, [self._request_of(p) for p in self._inbox[number]])
        for route in list(self._network.routes.values()):
            holding, route.holding = route.holding, []
            for link in holding:
                link.release()
        await asyncio.gather(*self._starting.values())
        await self._until(
            lambda: all(t.done() for t in self._tasks.values()), "answer all requests"
        )
        await self._until(lambda: self._cluster.controller() is not None, "have a controller")

    async def _until(self, holds: Callable[[], object], what: str) -> None:
        deadline_s = self._loop.time() + _WITHIN_S
        while not holds():
            if self._loop.time() > deadline_s:
                raise DepartedError(f"step {self._at + 1}: the nodes did not {what}")
            await asyncio.sleep(_POLL_S)

    async def _permitted(self, holds: Callable[[], object]) -> None:
        while not (self._is_over or holds()):
            self._changed.clear()
            await self._changed.wait()

    def _permit(self) -> None:
        self._changed.set()

    # --- Inside the nodes ------------------------------------------------------------------------

    def _gated(self, node: SimulatedNode, production: Collaborators) -> Collaborators:
        """Derive collaborators that wait for the path."""
        replay, may, number = self, self._may, node.id

        class Store(production.store):  # type: ignore[name-defined, misc]
            async def elect(self, broker_id: int, now_ms: int) -> Fence | None:
                if not replay._is_over and number not in may.claims:
                    return None  # As if another candidate had won; the node tries again.
                may.claims.discard(number)
                fence: Fence | None = await super().elect(broker_id, now_ms)
                return fence

        class Controller(production.controller):  # type: ignore[name-defined, misc]
            async def _load(self, store: ZooKeeperStore, fence: Fence, elected_ms: float) -> Term:
                await replay._permitted(lambda: number in may.loads)
                may.loads.discard(number)
                term: Term = await super()._load(store, fence, elected_ms)
                replay._gate_term(number, term)
                return term

            def batch_received(self, peer: Any, lowest_unfinished: int, applied_zxid: int) -> None:
                broker = peer.hello.broker_id
                passes = replay._is_over or may.floors.get((number, broker), False)
                super().batch_received(peer, lowest_unfinished if passes else 0, applied_zxid)

        class Forwarding(production.forwarding):  # type: ignore[name-defined, misc]
            async def _known_target(self, sequence: int, deadline_s: float) -> Any:
                await replay._permitted(lambda: may.forwards[number, sequence] > 0)
                may.forwards[number, sequence] -= 1
                return await super()._known_target(sequence, deadline_s)

        return replace(production, store=Store, controller=Controller, forwarding=Forwarding)

    def _gate_term(self, number: int, term: Term) -> None:
        """Let submissions, refreshes of brokers and prunings of a term wait for the path."""
        submit, refresh, prune = term.loop.submit, term.brokers_changed, term._prune_outcomes
        self._terms[number] = term
        self._chosen[number].clear()

        def gated_submit(pending: PendingRequest) -> None:
            if self._is_over:
                submit(pending)
            else:
                self._inbox[number].append(pending)

        def gated_refresh() -> None:
            if self._is_over or number in self._may.refreshes:
                refresh()

        async def gated_prune() -> None:
            if self._is_over or number in self._may.prunings:
                self._may.prunings.discard(number)
                await prune()

        term.loop.submit = gated_submit  # type: ignore[method-assign]
        term.brokers_changed = gated_refresh  # type: ignore[method-assign]
        term._prune_outcomes = gated_prune  # type: ignore[method-assign]
        self._submit_to[number] = submit

    def _submit(self, number: int, requests: list[int]) -> None:
        """Submit the chosen requests to the loop, in this order, one copy of each."""
        for request in requests:
            pending = next((p for p in self._inbox[number] if self._request_of(p) == request), None)
            if pending is not None:
                self._inbox[number].remove(pending)
                self._submit_to[number](pending)

    # --- Messages --------------------------------------------------------------------------------

    def _holds(self, link: SimulatedLink, message: Message) -> bool:
        """Return whether a message that has arrived waits for its step."""
        match message.arguments:
            case [batch] if getattr(batch, "envelopes", None):
                return True
            case [_, batch] if _ends_requests(batch):
                return True
            case [_, batch] if getattr(batch, "updates", None):
                return self._holds_updates
            case [connection, _, session_id, Multi() as execute] if session_id in self._epochs:
                if not _is_of_request(execute):
                    return False
                epoch = self._epochs[session_id]
                self._sent[epoch].append(_Sent(link, execute, connection))
                return True
            case [_, MultiResult() as result, _]:
                return any(result is r for of_epoch in self._replies.values() for r in of_epoch)
            case [_, "data" | "child", *_]:
                client = link.connection.client
                return client is not None and int(client.name) in self._blind
        return False

    def _held(self, matches: Callable[[Message], bool]) -> list[SimulatedLink]:
        """Return the links whose first held message matches."""
        links = [link for route in self._network.routes.values() for link in route.holding]
        return [link for link in dict.fromkeys(links) if link.held and matches(link.held[0])]

    def _envelope_link(self, request: int) -> SimulatedLink | None:
        def has(message: Message) -> bool:
            return any(
                self._request(e.broker_id, e.incarnation, e.sequence) == request
                for e in getattr(
                    message.arguments[-1] if message.arguments else None, "envelopes", ()
                )
            )

        links = [link for link in self._held(has) if link is not self._late.get(request)]
        return links[0] if links else None

    def _reply_link(self, request: int) -> SimulatedLink | None:
        asked = self._requests[request - 1]

        def has(message: Message) -> bool:
            batch = message.arguments[-1] if message.arguments else None
            return any(r.sequence == asked["seq"] for r in getattr(batch, "replies", ()))

        links = [
            link
            for link in self._held(has)
            if link.connection.client is self._cluster.nodes[asked["node"]].process
            and link.connection in self._network.connections
        ]
        return links[0] if links else None

    # --- Who is who ------------------------------------------------------------------------------

    def _note_life(self, number: int, life: int) -> None:
        node = self._cluster.nodes[number]
        assert node.node is not None
        self._incarnations[node.node._parts.broker.state.incarnation] = life

    def _request(self, broker: int, incarnation: str, sequence: int) -> int | None:
        life = self._incarnations.get(incarnation)
        for number, request in enumerate(self._requests, 1):
            if (request["node"], request["life"], request["seq"]) == (broker, life, sequence):
                return number
        return None

    def _request_of(self, pending: PendingRequest) -> int:
        number = self._request(*pending.identity)
        assert number is not None
        return number

    def _latest_epoch(self, node: int) -> int:
        return max(epoch for epoch, elected in self._nodes.items() if elected == node)

    def _parts(self, number: int) -> Any:
        node = self._cluster.nodes[number].node
        return None if node is None else node._parts

    # --- Steps -----------------------------------------------------------------------------------

    async def _do_ClaimSent(self, node: int) -> None:  # noqa: N802  # the action's name
        self._may.claims.add(node)
        controller = self._parts(node).controller
        await self._until(lambda: controller._fence is not None, "elect a controller")
        epoch = len(self._nodes) + 1
        self._nodes[epoch] = node
        self._epochs[controller._store._session.session_id] = epoch

    async def _do_BecameActive(self, node: int) -> None:  # noqa: N802
        self._may.loads.add(node)
        self._permit()
        controller = self._parts(node).controller
        await self._until(lambda: controller.state is ControllerState.ACTIVE, "become active")
        brokers = {request["node"] for request in self._requests} - self._blind

        def is_known(broker: int) -> bool:
            parts = self._parts(broker)
            target = parts and parts.broker.forwarding._target
            return parts is None or (target is not None and target.controller_id == node)

        await self._until(lambda: all(map(is_known, brokers)), "follow the new controller")

    async def _do_Resigned(self, node: int) -> None:  # noqa: N802
        controller = self._parts(node).controller
        process = self._cluster.nodes[node].process
        assert process is not None
        task = asyncio.create_task(controller.resign("the path"), context=process.context)
        # The loop of the term does not have these requests yet.
        for pending in self._inbox.pop(node, []):
            pending.reply.set_result(NOT_CONTROLLER)
        await self._until(lambda: controller._term is None, "resign")
        self._starting[-node] = task

    async def _do_SessionEnded(self, epoch: int) -> None:  # noqa: N802
        (session_id,) = (s for s, of in self._epochs.items() if of == epoch)
        node = self._nodes[epoch]
        if self._parts(node).controller.epoch:
            self._blind_until_resigned(node)
            service = f"zookeeper of {node}"
            self._cuts.enter_context(
                self._network.cut(Direction(service, True), Direction(service, False))
            )
        await self._until(lambda: session_id not in self._service.model.sessions, "end a session")

    def _blind_until_resigned(self, node: int) -> None:
        """The former controller does not notice its end, nor do brokers that still send to it."""
        self._blind.add(node)
        rest = self._steps[self._at :]
        for broker in {request["node"] for request in self._requests}:
            received = [
                step[1]
                for step in rest
                if step[0] == "EnvelopeReceived" and self._requests[step[2] - 1]["node"] == broker
            ]
            if received[:1] == [node]:
                self._blind.add(broker)

    async def _do_ControllerZnodeDeleted(self) -> None:  # noqa: N802
        self._blind_until_resigned(self._nodes[max(self._nodes)])
        await self._write(Delete(ControllerZnode.path))

    async def _do_DirectWrite(self, topic: str) -> None:  # noqa: N802
        await self._write(Create(TopicZnode.path(topic), b'{"version":1,"partitions":{}}'))

    async def _write(self, operation: Operation) -> None:
        session = SimulatedSession(
            self._service, session_timeout_ms=_SESSION_TIMEOUT_MS, on_state=lambda _state: None
        )
        await session.open(_WITHIN_S)
        await session.multi([session.encode(operation)])
        await session.close()

    async def _do_ForwardSent(self, request: int) -> None:  # noqa: N802
        asked = self._requests[request - 1]
        for number, other in enumerate(self._requests, 1):
            same = (other["node"], other["life"]) == (asked["node"], asked["life"])
            if same and other["seq"] <= asked["seq"] and number not in self._tasks:
                self._ask(number)
        forwarding = self._parts(asked["node"]).broker.forwarding
        await self._until(
            lambda: asked["seq"] in forwarding._unfinished, f"begin to forward request {request}"
        )
        self._may.forwards[asked["node"], asked["seq"]] += 1
        self._permit()
        await self._until(lambda: self._envelope_link(request), f"forward request {request}")

    def _ask(self, number: int) -> None:
        """Send a client's request; those of one connection are sent at once."""
        group = [number]
        while following := [n for n, q in enumerate(self._requests, 1) if q["after"] == group[-1]]:
            group += following
        results: list[asyncio.Future[Any]] = [self._loop.create_future() for _ in group]
        for member, result in zip(group, results, strict=True):
            self._tasks[member] = asyncio.create_task(_result_of(result))
        client = asyncio.create_task(self._client(group, results))
        self._tasks[-number] = client

    async def _client(self, group: list[int], results: list[asyncio.Future[Any]]) -> Any:
        broker = self._requests[group[0] - 1]["node"]
        try:
            connection = await AsyncConnection.open(self._cluster.address(broker))
            messages = [_message(n, self._requests[n - 1]) for n in group]
            connection.send(*(encode_message(*message) for message in messages))
            for result, (key, version, _), number in zip(results, messages, group, strict=True):
                response = decode_message(key, version, await connection.receive())
                result.set_result(_outcome(key, response, self._requests[number - 1]))
            connection.close()
        except (OSError, EOFError):
            for result in results:
                if not result.done():
                    result.set_result(_GONE)

    async def _do_EnvelopeReceived(self, node: int, request: int) -> None:  # noqa: N802
        link = self._envelope_link(request)
        if link is None:
            raise DepartedError(f"step {self._at + 1}: no Envelope of request {request} is sent")
        link.release_first()

    async def _do_LateReceived(self, node: int, request: int) -> None:  # noqa: N802
        self._late.pop(request).release_first()

    async def _do_ChannelBroken(self, request: int) -> None:  # noqa: N802
        """What is on its way is lost."""
        for connection in self._channels_of(request):
            for link in (connection.requests, connection.replies):
                link.held.clear()
            connection.reset()
        await self._until_connected(self._requests[request - 1]["node"])

    async def _do_EnvelopeDelayed(self, request: int) -> None:  # noqa: N802
        """Only the broker learns that the channel is broken."""
        link = self._envelope_link(request)
        assert link is not None
        self._late[request] = link
        link.connection.replies.send(link.connection.on_client_reset)
        await self._until_connected(self._requests[request - 1]["node"])

    def _channels_of(self, request: int) -> list[Any]:
        process = self._cluster.nodes[self._requests[request - 1]["node"]].process
        return [
            connection
            for connection in self._network.connections
            if connection.client is process and connection.service.startswith("envelopes")
        ]

    async def _until_connected(self, broker: int) -> None:
        forwarding = self._parts(broker).broker.forwarding
        await asyncio.sleep(_SETTLED_S)
        await self._until(lambda: forwarding._target is not None, "open a channel again")

    async def _do_ExecutionStarted(self, node: int, request: int) -> None:  # noqa: N802
        """The copy belongs to the next round, which begins with the next step of this node."""
        inbox = [self._request_of(pending) for pending in self._inbox[node]]
        if inbox.count(request) <= self._chosen[node].count(request):
            raise DepartedError(f"step {self._at + 1}: no copy of request {request} waits")
        self._chosen[node].append(request)

    async def _do_DecidedTooLate(self, node: int, request: int) -> None:  # noqa: N802
        self._submit(node, [request])

    def _begin_round(self, node: int) -> None:
        self._submit(node, self._chosen.pop(node, []))

    async def _do_CommitSent(self, node: int) -> None:  # noqa: N802
        self._begin_round(node)
        epoch = self._latest_epoch(node)
        await self._until(lambda: self._sent[epoch], "send a multi")

    async def _do_CommitUnknown(self, node: int) -> None:  # noqa: N802
        epoch = self._latest_epoch(node)
        await self._until(lambda: any(s.is_heard for s in self._sent[epoch]), "resend a multi")

    async def _do_Applied(self, epoch: int) -> None:  # noqa: N802
        if not self._sent[epoch]:
            raise DepartedError(f"step {self._at + 1}: no multi of epoch {epoch} is on its way")
        sent = self._sent[epoch].pop(0)
        if not sent.is_heard:
            (session_id,) = (s for s, of in self._epochs.items() if of == epoch)
            session = self._service.model.sessions.get(session_id)
            if session is not None:
                sent.execute(session)
            return
        deliver, (connection, client, session_id, execute) = sent.link.held[0]

        def noted(session: Any) -> MultiResult:
            result: MultiResult = execute(session)
            self._replies[epoch].append(result)
            return result

        sent.link.held[0] = Message(deliver, (connection, client, session_id, noted))
        sent.link.release_first()

    async def _do_ConnectionLost(self, node: int, kept: int) -> None:  # noqa: N802
        """The first `kept` multis have reached ZooKeeper, which applies them later."""
        epoch = self._latest_epoch(node)
        connection = self._sent[epoch][0].connection if self._sent[epoch] else None
        if connection is None:
            (link,) = self._held(
                lambda m: any(x is r for x in m.arguments for r in self._replies[epoch])
            )
            connection = link.connection
        self._sent[epoch] = [replace(sent, is_heard=False) for sent in self._sent[epoch][:kept]]
        self._replies[epoch].clear()
        connection.requests.held.clear()
        connection.replies.held.clear()
        connection.reset()

    def _ack_link(self, epoch: int) -> SimulatedLink | None:
        results = self._replies[epoch]
        links = self._held(lambda m: any(x is r for x in m.arguments for r in results))
        return links[0] if links else None

    async def _do_CommitAcknowledged(self, node: int) -> None:  # noqa: N802
        epoch = self._latest_epoch(node)
        await asyncio.sleep(_SETTLED_S)
        if (link := self._ack_link(epoch)) is not None:
            self._replies[epoch].pop(0)
            link.release_first()

    async def _do_RequestDecided(self, node: int, request: int) -> None:  # noqa: N802
        self._begin_round(node)

    async def _do_Responded(self, request: int) -> None:  # noqa: N802
        task = self._tasks[request]
        await self._until(
            lambda: self._reply_link(request) or task.done(), f"respond to request {request}"
        )
        if (link := self._reply_link(request)) is not None:
            link.release_first()
        await self._until(task.done, f"answer request {request}")

    async def _do_ImageAdvanced(self, node: int, broker: int) -> None:  # noqa: N802
        """A batch of updates may also have replies of the same round."""
        if broker == node:  # Its updates are applied at once, without a message.
            return
        process = self._cluster.nodes[broker].process

        def held() -> list[SimulatedLink]:
            links = self._held(lambda m: bool(getattr(m.arguments[-1], "updates", None)))
            return [link for link in links if link.connection.client is process]

        await self._until(held, f"send updates to broker {broker}")
        while links := held():
            links[0].release_first()
            await asyncio.sleep(_SETTLED_S)

    async def _do_FloorReported(self, node: int, broker: int) -> None:  # noqa: N802
        self._may.floors[node, broker] = True
        parts = self._parts(broker)
        incarnation = broker, parts.broker.state.incarnation
        floors = self._terms[node].loop.outcomes.floors
        lowest = parts.broker.forwarding.lowest_unfinished
        await self._until(lambda: floors.get(incarnation, 0) >= lowest, "report a floor")
        self._may.floors[node, broker] = False

    async def _do_OutcomesPruned(self, node: int) -> None:  # noqa: N802
        self._may.prunings.add(node)
        epoch = self._latest_epoch(node)
        await self._until(lambda: self._sent[epoch], "prune outcomes")

    async def _do_NodeRestarted(self, broker: int) -> None:  # noqa: N802
        node = self._cluster.nodes[broker]
        self._run.record.fault_injected("kill", broker)
        node.kill()
        self._run.record.note_ends([node])
        self._starting[broker] = asyncio.create_task(node.start())

    async def _do_Unregistered(self, broker: int) -> None:  # noqa: N802
        model = self._service.model
        path = f"/brokers/ids/{broker}"
        owners = [s.id for s in model.sessions.values() if path in s.ephemerals]
        self._blind.add(broker)
        if broker not in self._starting:  # The process must not notice.
            service = f"zookeeper of {broker}"
            self._cuts.enter_context(
                self._network.cut(Direction(service, True), Direction(service, False))
            )
        for session_id in owners:
            self._service.end_session(session_id)
        self._blind.discard(broker)

    async def _do_Registered(self, broker: int) -> None:  # noqa: N802
        await self._until(self._starting[broker].done, "register again")
        self._note_life(broker, self._life(broker))
        if self._terms:
            await self._until_connected(broker)

    async def _do_BrokersRead(self, node: int) -> None:  # noqa: N802
        self._may.refreshes.add(node)
        term = self._terms[node]
        term.brokers_changed()
        await self._until(lambda: not term._refresh_is_queued, "read the brokers")
        self._may.refreshes.discard(node)

    # --- The end ---------------------------------------------------------------------------------

    def _end(self) -> dict[str, Any]:
        """Return what `IsFollowed` in spec/Paths.tla prints."""
        model = self._service.model
        paths = set(model.paths())
        topics = {topic for request in self._requests for topic in request["topics"]}
        epochs = range(1, 1 + max(self._nodes, default=0))
        return {
            "results": [self._result(number) for number in range(1, len(self._requests) + 1)],
            "effects": self._effects(),
            "exists": {
                topic: TopicZnode.path(topic) in paths
                and DeletionMarkerZnode.path(topic) not in paths
                for topic in sorted(topics)
            },
            "epoch": self._epoch(),
            "active": [
                number
                for number in self._cluster.nodes
                if (parts := self._parts(number)) is not None
                and parts.controller.state is ControllerState.ACTIVE
            ],
            "outcomes": sorted(self._outcomes(paths)),
            "informed": self._informed(),
            "replies": [
                [_VERDICTS.get(r.failed_index, "conflict") for r in self._replies[epoch]]
                for epoch in epochs
            ],
        }

    def _result(self, number: int) -> dict[str, Any]:
        asked = self._requests[number - 1]
        if number in self._tasks:
            task = self._tasks[number]
            return task.result() if task.done() else _NO_RESULT
        return _GONE if asked["life"] < self._life(asked["node"]) else _NO_RESULT

    def _life(self, broker: int) -> int:
        done = self._steps[: self._at + 1]
        return 1 + done.count(("NodeRestarted", broker))

    def _epoch(self) -> int:
        znode = self._service.model._znodes.get(ControllerEpochZnode.path)
        return 0 if znode is None else ControllerEpochZnode.decode(znode.data)

    def _effects(self) -> list[list[Any]]:
        """Return each effect as request and topic, in the order of commits.

        The outcomes of two copies in one multi are one outcome. Each copy changes the config.
        """
        effects = []
        for transaction in self._service.model.log:
            effects += [
                [number, topic]
                for outcome in commit_line(transaction).outcomes
                for number, topic in [self._element(outcome)]
                if self._requests[number - 1]["kind"] != "alter"
            ]
            effects += [
                [number, self._requests[number - 1]["topics"][0]]
                for operation in transaction.operations
                if operation.path.startswith(_QUOTAS) and not transaction.failed
                for number in range(1, len(self._requests) + 1)
                if b"%d" % (_RATE + number) in (operation.data or b"")
            ]
        return effects

    def _informed(self) -> list[int]:
        """Return the brokers that have applied the last commit with an effect."""
        if not self._holds_updates:
            return []
        zxid = max((t.zxid for t in self._service.model.log if commit_line(t).outcomes), default=0)
        applied = {n: self._parts(n).broker.consistency.applied_zxid for n in self._cluster.nodes}
        return [number for number, applied_zxid in applied.items() if applied_zxid >= zxid]

    def _element(self, outcome: CommitOutcome) -> list[Any]:
        number = self._request(outcome.broker_id, outcome.incarnation, outcome.sequence)
        assert number is not None
        topics = self._requests[number - 1]["topics"]
        return [number, outcome.element if outcome.element in topics else topics[0]]

    def _outcomes(self, paths: set[str]) -> list[list[Any]]:
        """Return broker, sequence and topic of each outcome in ZooKeeper."""
        outcomes = []
        for path in paths:
            if path.startswith(f"{OutcomeZnode.parent}/"):
                data = orjson.loads(self._service.model._znodes[path].data or b"")
                for entry in data["outcomes"]:
                    broker, incarnation, sequence = entry["id"]
                    request = self._request(broker, incarnation, sequence)
                    assert request is not None
                    topics = self._requests[request - 1]["topics"]
                    outcomes += [
                        [broker, sequence, element if element in topics else topics[0]]
                        for element, *_ in entry["elements"]
                    ]
        return outcomes


def _is_of_request(execute: Multi) -> bool:
    """Return whether a multi writes or deletes outcomes of requests."""
    operations = [decode_operation(encoded) for encoded in execute.operations]
    return any(
        operation.path.startswith(f"{OutcomeZnode.parent}/")
        for operation in operations
        if isinstance(operation, Create | Delete)
    )


def _ends_requests(batch: Any) -> bool:
    """Return whether a batch has replies that end requests: NOT_CONTROLLER does not."""
    return any(r.error_code != ErrorCode.NOT_CONTROLLER for r in getattr(batch, "replies", ()))


async def _result_of(result: asyncio.Future[Any]) -> Any:
    return await result


def _message(number: int, request: Mapping[str, Any]) -> tuple[int, int, Any]:
    """Return the key, version and message of a request of a model."""
    match request["kind"]:
        case "create":
            return ApiKey.CREATE_TOPICS, 4, creation(request["topics"])
        case "delete":
            return ApiKey.DELETE_TOPICS, 6, deletion(request["topics"])
    rate = OpData(key="producer_byte_rate", value=float(_RATE + number), remove=False)
    user = EntityData(entity_type="user", entity_name=request["topics"][0])
    quotas = AlterClientQuotasRequest([EntryData([user], [rate])], False)
    return ApiKey.ALTER_CLIENT_QUOTAS, 0, quotas


def _outcome(key: int, response: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a request ended for its client."""
    match key:
        case ApiKey.CREATE_TOPICS:
            results = response.topics
        case ApiKey.DELETE_TOPICS:
            results = response.responses
        case _:
            results = response.entries
    codes = [result.error_code for result in results]
    if int(ErrorCode.UNKNOWN_SERVER_ERROR) in codes:  # instead of an error of the Envelope
        return _REJECTED
    if key == ApiKey.ALTER_CLIENT_QUOTAS:
        errors = {request["topics"][0]: _ERRORS.get(codes[0], f"error {codes[0]}")}
    else:
        errors = {r.name: _ERRORS.get(r.error_code, f"error {r.error_code}") for r in results}
    return {"how": "answered", "errors": errors}
