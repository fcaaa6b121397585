"""Bugs of Kafka's controller and its forwarding, and similar ones, as faulty parts of a node.

For most bugs, `chaos/kafka_bugs.py` has the issue and the scenario. Production never imports this
module.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from broker_proxy.forwarding.manager import ForwardingManager
from cluster_model.session_state import ConnectionLostError, SessionLostError, SessionState
from cluster_model.znodes.operations import Check, Create, Delete, Operation, SetData
from cluster_model.znodes.layout import CommitZnode, ControllerEpochZnode, ControllerZnode
from controller.apis.base import Outcome
from controller.controller import Controller
from controller.loop.loop import ControllerLoop
from controller.services import Sender, Services, Settings
from controller.store.outcomes import OutcomeIndex
from controller.store.port import Committed, ContentConflictError, Fence
from controller.store.zookeeper import ZooKeeperStore
from controller.term.term import Term
from envelope.messages import Envelope, EnvelopeReply, RequestIdentity

_NODE_EXISTS: Final = -110  # ZooKeeper's error code
_POLL_S: Final = 0.01
_FOR_EVER_MS: Final = 1_000_000_000


# --- The controller's store ----------------------------------------------------------------------


class ZombieStore(ZooKeeperStore):
    """Hides the loss of its session, so that the controller does not resign."""

    def __init__(
        self, connect: str, *, on_state: Callable[[SessionState], None], **others: Any
    ) -> None:
        def hide_loss(state: SessionState) -> None:
            if state is not SessionState.LOST:
                on_state(state)

        super().__init__(connect, on_state=hide_loss, **others)


class SessionReplacingStore(ZombieStore):
    """retry_across_sessions: resends a multi in a new session, as in KAFKA-6082."""

    async def _wait_for_reconnect(self, number: int, lost: ConnectionLostError) -> None:
        if not isinstance(lost, SessionLostError):
            await super()._wait_for_reconnect(number, lost)
            return
        self._session = self._new_session()
        await self._session.open(self._session_timeout_ms / 1000)


class UnfencedConfigsStore(ZooKeeperStore):
    """unfenced_configs: writes configs without a check of the epoch, as in KAFKA-16539."""

    _writes_configs = False

    async def commit_pipelined(
        self, fence: Fence, effects: Sequence[Sequence[bytes]]
    ) -> tuple[list[Committed], ContentConflictError | None]:
        """See ZooKeeperStore."""
        committed: list[Committed] = []
        for each in effects:
            self._writes_configs = any(b"/config/" in operation for operation in each)
            done, conflict = await super().commit_pipelined(fence, [each])
            committed += done
            if conflict is not None:
                return committed, conflict
        return committed, None

    def _fence_operations(self, fence: Fence, number: int) -> list[bytes]:
        check, count = super()._fence_operations(fence, number)
        if self._writes_configs:
            check = self.encode(Check(CommitZnode.path, -1))
        return [check, count]


class NaiveRetryStore(ZooKeeperStore):
    """naive_retry: a znode that the first copy of a multi created counts as a conflict."""

    async def _first_copy(self, number: int, sent_before: bool) -> Committed:
        if sent_before:
            self._commit_number = number
            raise ContentConflictError(1, _NODE_EXISTS)
        return await super()._first_copy(number, sent_before)


class AssumingStore(ZooKeeperStore):
    """assumes_commit: treats a lost reply as a success, and records 0 as its zxid."""

    async def _resolve(
        self,
        fence: Fence,
        number: int,
        operations: Sequence[bytes],
        answer: Any,
    ) -> Committed:
        if isinstance(answer, ConnectionLostError) and not isinstance(answer, SessionLostError):
            return self._counted(number, 0)
        return await super()._resolve(fence, number, operations, answer)


class TwoStepStore(ZooKeeperStore):
    """splits_the_election: creates /controller, and sets the epoch in a second transaction."""

    async def elect(self, broker_id: int, now_ms: int) -> Fence | None:
        """See ZooKeeperStore."""
        if await self._session.exists(ControllerZnode.path) is not None:
            return None
        epoch, version = await self._read_epoch()
        steps: tuple[Operation, ...] = (
            Create(ControllerZnode.path, ControllerZnode.encode(broker_id, now_ms), ephemeral=True),
            SetData(ControllerEpochZnode.path, ControllerEpochZnode.encode(epoch + 1), version),
        )
        for step in steps:
            result = await self._session.multi([self.encode(step)])
            if result.failed_index is not None:
                return None
        last_zxid = await self._read_last_commit()
        return Fence(epoch + 1, version + 1, result.zxid, last_zxid)


# --- The controller ------------------------------------------------------------------------------


class _NoOutcomes(OutcomeIndex):
    """forgets_outcomes: does not find the results of earlier copies of a request."""

    def lookup(self, identity: RequestIdentity) -> Mapping[str, Outcome]:
        """See OutcomeIndex."""
        return {}


class ForgetfulController(Controller):
    """A controller that does not end its terms properly. A subclass names the bugs in `bugs`."""

    bugs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, settings: Settings, services: Services) -> None:
        self._source = random.Random(0)
        if "repeats_topic_ids" in self.bugs:  # each controller begins with the same ids
            services = replace(services, random=self._source)
        self._former: ControllerLoop | None = None
        self._newest: tuple[Envelope, Sender] | None = None
        self._late = set[asyncio.Task[Any]]()
        super().__init__(settings, services)

    async def handle(self, envelope: Envelope, sender: Sender) -> EnvelopeReply:
        """See Controller."""
        if self._term is not None:
            self._newest = envelope, sender
        return await super().handle(envelope, sender)

    async def _load(self, store: ZooKeeperStore, fence: Fence, elected_ms: float) -> Term:
        self._source.seed(0)
        former = self._former
        term = await super()._load(store, fence, elected_ms)
        if "forgets_outcomes" in self.bugs:
            known = term.loop.outcomes
            term.loop.outcomes = _NoOutcomes(*(getattr(known, f.name) for f in fields(known)))
        if "reuses_image" in self.bugs and former is not None:
            term.loop.image = replace(former.image, zxid=term.loop.image.zxid)
        self._former = term.loop
        return term

    async def _return_to_standby(self) -> None:
        was_elected = self._fence is not None
        await super()._return_to_standby()
        if was_elected and "acts_after_resigning" in self.bugs:
            self._start(self._act())
        if was_elected and "deletes_successors_znode" in self.bugs:
            self._start(self._delete_successors_znode())

    def _start(self, late: Any) -> None:
        task = asyncio.create_task(late)
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _act(self) -> None:
        """Process one more Envelope in the loop of the former term."""
        if self._former is None or self._newest is None:
            return
        self._envelopes.open(self._former)
        self._start(self._former.run())
        self._start(self._envelopes.handle(*self._newest))
        await asyncio.sleep(0)  # until the Envelope is in the loop
        self._envelopes.open(None)

    async def _delete_successors_znode(self) -> None:
        store = self._services.new_store(lambda _: None)
        await store.open(self._settings.connection_timeout_ms / 1000)
        while await store._session.exists(ControllerZnode.path) is None:
            await asyncio.sleep(_POLL_S)
        await store._session.multi([store.encode(Delete(ControllerZnode.path))])
        await store.close()


# --- Forwarding ----------------------------------------------------------------------------------


class RelayingForwarding(ForwardingManager):
    """relays_not_controller: the client gets the controller's error, as in KAFKA-12677."""

    async def _attempt(self, *arguments: Any) -> EnvelopeReply | None:
        reply = await super()._attempt(*arguments)
        if reply is not None and reply.error_code == ErrorCode.NOT_CONTROLLER:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        return reply


class EndlessForwarding(ForwardingManager):
    """resends_forever: no time limit ends the attempts, as in KAFKA-10667."""

    def __init__(self, **others: Any) -> None:
        super().__init__(**{**others, "request_timeout_ms": _FOR_EVER_MS})


ZOMBIE_STORES: Final = {"retry_across_sessions": SessionReplacingStore}
STORES: Final = {
    "unfenced_configs": UnfencedConfigsStore,
    "naive_retry": NaiveRetryStore,
    "assumes_commit": AssumingStore,
    "splits_the_election": TwoStepStore,
}
OF_CONTROLLERS: Final = (
    "acts_after_resigning",
    "deletes_successors_znode",
    "forgets_outcomes",
    "repeats_topic_ids",
    "reuses_image",
)
FORWARDING: Final = {
    "relays_not_controller": RelayingForwarding,
    "resends_forever": EndlessForwarding,
}
