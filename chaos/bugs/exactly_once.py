"""Bugs that leave out one part of the exactly-once protocol.

Each but the last corresponds to a negative control of the specification (`spec/models.py`). The
counterexample of the control is replayed on nodes with the bug (`spec/paths.toml`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

from broker_proxy.forwarding.manager import ForwardingManager
from chaos.bugs.bug import Bug, part
from controller.apis.base import Outcome
from controller.controller import Controller
from controller.services import Services, Settings
from controller.store.outcomes import OutcomeIndex, Pruning
from controller.store.port import Fence
from controller.store.zookeeper import ZooKeeperStore
from controller.term.outcome_pruning import OutcomePruner
from controller.term.term import Term
from envelope.messages import RequestIdentity

REPLAYED: Final = "unit/chaos/test_paths.py::test_faulty_nodes_end_where_the_counterexample_ends"


class _NothingRunning(dict[Any, Any]):
    def get(self, _key: Any, _default: Any = None) -> None:
        return None


class _ExecutesCopies(Controller):
    def __init__(self, settings: Settings, services: Services) -> None:
        super().__init__(settings, services)
        self._envelopes._running = _NothingRunning()


class _FaultyTerms(Controller):
    """A controller that changes each of its terms."""

    async def _load(self, store: ZooKeeperStore, fence: Fence, elected_ms: float) -> Term:
        term = await super()._load(store, fence, elected_ms)
        self._change(term)
        return term

    def _change(self, term: Term) -> None:
        raise NotImplementedError


class _RespondsBeforeCommit(_FaultyTerms):
    def _change(self, term: Term) -> None:
        loop, commit = term.loop, term.loop._commit_multis

        async def respond_and_commit(multis: Any) -> Any:
            for pending in loop._in_round:
                if not pending.uncommitted and not pending.reply.done():
                    loop._responses.complete(pending)
            loop._log.flush()
            return await commit(multis)

        loop._commit_multis = respond_and_commit  # type: ignore[method-assign]


class _OfAnyProcess(OutcomeIndex):
    def lookup(self, identity: RequestIdentity) -> Mapping[str, Outcome]:
        for other, outcomes in self.committed.items():
            if (other.broker_id, other.sequence) == (identity.broker_id, identity.sequence):
                return outcomes
        return {}


class _FaultyOutcomes(_FaultyTerms):
    """A controller whose terms have another class of index."""

    index: type[OutcomeIndex]

    def _change(self, term: Term) -> None:
        loaded = term.loop.outcomes
        term.loop.outcomes = self.index(*(getattr(loaded, f.name) for f in fields(loaded)))


class _IgnoresIncarnations(_FaultyOutcomes):
    index = _OfAnyProcess


class _ReportsHighest(ForwardingManager):
    _highest = 0

    @property
    def lowest_unfinished(self) -> int:
        return self._highest + 1

    async def _attempts(self, message: Any) -> Any:
        try:
            return await super()._attempts(message)
        finally:
            self._highest = max(self._highest, message.identity.sequence)


class _ForgetsFloors(_FaultyTerms):
    def _change(self, term: Term) -> None:
        term.loop.outcomes.floors.clear()


class _ChecksFloorOnce(_FaultyTerms):
    def _change(self, term: Term) -> None:
        loop, decide = term.loop, term.loop._decide

        async def decide_without_floors(*arguments: Any) -> Any:
            outcomes, loop.outcomes = loop.outcomes, replace(loop.outcomes, floors={})
            try:
                return await decide(*arguments)
            finally:
                loop.outcomes = outcomes

        loop._decide = decide_without_floors  # type: ignore[method-assign, assignment]


class _PrunesAtOnce(_FaultyTerms):
    def _change(self, term: Term) -> None:
        term._pruner = OutcomePruner(grace_ms=-1)


class _RemembersRaisedFloors(OutcomeIndex):
    def pruned(self, pruning: Pruning) -> None:
        now = {incarnation: self.floors[incarnation] for incarnation in pruning.floors}
        OutcomeIndex.pruned(self, replace(pruning, floors=now))


class _TakesRaisedFloorsForStored(_FaultyOutcomes):
    index = _RemembersRaisedFloors


class _RespondsWithoutLease(ZooKeeperStore):
    def lease_holds(self) -> bool:
        return True


BUGS: Final[tuple[Bug, ...]] = (
    Bug(
        name="executes_copies",
        does="A resend of a request in progress is executed as well.",
        apply=part("controller", _ExecutesCopies),
        found_by="the end of the replay",
        test=REPLAYED,
    ),
    Bug(
        name="responds_before_commit",
        does="A rejection is sent before the writes on which it rests are committed.",
        apply=part("controller", _RespondsBeforeCommit),
        found_by="D5",
        test=REPLAYED,
    ),
    Bug(
        name="ignores_incarnations",
        does="A controller takes the outcome of a broker's earlier process for that of a request.",
        apply=part("controller", _IgnoresIncarnations),
        found_by="D1",
        test=REPLAYED,
    ),
    Bug(
        name="reports_highest_floor",
        does="A broker reports as its floor what follows the highest finished request.",
        apply=part("forwarding", _ReportsHighest),
        found_by="the end of the replay",
        test=REPLAYED,
    ),
    Bug(
        name="forgets_floors",
        does="A new controller ignores the floors that earlier controllers have stored.",
        apply=part("controller", _ForgetsFloors),
        found_by="D3, F7",
        test=REPLAYED,
    ),
    Bug(
        name="checks_floor_once",
        does="A controller compares a request with the floor only when the request arrives.",
        apply=part("controller", _ChecksFloorOnce),
        found_by="D3, F7",
        test=REPLAYED,
    ),
    Bug(
        name="prunes_at_once",
        does="The outcomes of a broker are pruned as soon as its registration is gone.",
        apply=part("controller", _PrunesAtOnce),
        found_by="D3, F7",
        test=REPLAYED,
    ),
    Bug(
        name="responds_without_lease",
        does="A controller responds although its session may have expired.",
        apply=part("store", _RespondsWithoutLease),
        found_by="the end of the replay",
        test=REPLAYED,
    ),
    Bug(
        name="takes_raised_floors_for_stored",
        does="A floor that rises while a lower one is being stored is taken for stored.",
        apply=part("controller", _TakesRaisedFloorsForStored),
        found_by="the specification of the whole run",
        test="integration/test_specification.py::test_only_the_whole_run_shows_a_floor_that_is_not_stored",
    ),
)
