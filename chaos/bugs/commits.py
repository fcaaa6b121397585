"""Bugs of what a controller concludes from the results of its commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from chaos.bugs.bug import Bug, KafkaBug, Run, part
from cluster_model.session_state import ConnectionLostError, SessionLostError
from controller.apis.base import Outcome
from controller.controller import Controller
from controller.store.outcomes import OutcomeIndex
from controller.store.port import Committed, ContentConflictError, Fence
from controller.store.zookeeper import ZooKeeperStore
from controller.term.term import Term
from envelope.messages import RequestIdentity

_NODE_EXISTS: Final = -110  # ZooKeeper's error code


class _NaiveRetryStore(ZooKeeperStore):
    async def _first_copy(self, number: int, sent_before: bool) -> Committed:
        if sent_before:
            self._commit_number = number
            raise ContentConflictError(1, _NODE_EXISTS)
        return await super()._first_copy(number, sent_before)


class _AssumingStore(ZooKeeperStore):
    async def _resolve(
        self,
        fence: Fence,
        number: int,
        operations: Sequence[bytes],
        response: Any,
    ) -> Committed:
        if isinstance(response, ConnectionLostError) and not isinstance(response, SessionLostError):
            return self._counted(number, 0)
        return await super()._resolve(fence, number, operations, response)


class _CountingStore(ZooKeeperStore):
    async def commit_pipelined(
        self, fence: Fence, effects: Sequence[Sequence[bytes]]
    ) -> tuple[list[Committed], ContentConflictError | None]:
        committed, conflict = await super().commit_pipelined(fence, effects)
        multis = zip(committed, effects, strict=False)
        return [done._replace(zxid=done.zxid + len(effect)) for done, effect in multis], conflict


class _NoOutcomes(OutcomeIndex):
    def lookup(self, identity: RequestIdentity) -> Mapping[str, Outcome]:
        return {}


class _ForgetsOutcomes(Controller):
    async def _load(self, store: ZooKeeperStore, fence: Fence, elected_ms: float) -> Term:
        term = await super()._load(store, fence, elected_ms)
        loaded = term.loop.outcomes
        term.loop.outcomes = _NoOutcomes(*(getattr(loaded, f.name) for f in fields(loaded)))
        return term


BUGS: Final[tuple[Bug, ...]] = (
    KafkaBug(
        name="naive_retry",
        does="A znode that the first copy of a multi created counts as a conflict.",
        apply=part("store", _NaiveRetryStore),
        found_by="D5",
        issue="lost reply to a creation that ZooKeeper applied",
        happened="The controller's ZooKeeper client sent the creation again and got NODEEXISTS. "
        "The admin client got TOPIC_ALREADY_EXISTS for its own topic.",
        run=Run(scenario="reply_of_commit_lost", found_by=("D5",)),
    ),
    KafkaBug(
        name="assumes_commit",
        does="A lost reply to a multi counts as a success with the zxid 0.",
        apply=part("store", _AssumingStore),
        found_by="D1, K4",
        issue="lost reply to a multi",
        happened="The controller cannot know whether ZooKeeper applied the multi. The faulty part "
        "assumes that ZooKeeper applied it.",
        run=Run(scenario="request_of_commit_lost", found_by=("D1", "K4")),
    ),
    Bug(
        name="counts_operations",
        does="Zxids are reported as if each operation of a multi were a transaction.",
        apply=part("store", _CountingStore),
        found_by="R6",
        run=Run(scenario="sessions_flap", found_by=("R6",)),
    ),
    Bug(
        name="forgets_outcomes",
        does="A controller does not find the results of earlier copies of a request.",
        apply=part("controller", _ForgetsOutcomes),
        found_by="D2, D3, D5, F7",
    ),
)
