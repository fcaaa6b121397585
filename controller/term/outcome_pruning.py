"""Prunes the outcomes of requests that will not be resent."""

from __future__ import annotations

from controller.loop.loop import ControllerLoop
from controller.store.outcomes import Incarnation
from controller.term.deletions import Deletions


class OutcomePruner:
    """Keeps the outcomes of a deregistered incarnation for `grace_ms`: resends may still arrive."""

    def __init__(self, grace_ms: int) -> None:
        self._grace_s = grace_ms / 1000
        self._missing_since: dict[Incarnation, float] = {}
        self._deletions = Deletions()

    def gone(
        self, incarnations: set[Incarnation], registered: set[Incarnation], now_s: float
    ) -> frozenset[Incarnation]:
        """Return the incarnations that have been unregistered for the whole grace period."""
        self._missing_since = {
            incarnation: self._missing_since.get(incarnation, now_s)
            for incarnation in incarnations - registered
        }
        return frozenset(
            incarnation
            for incarnation, since in self._missing_since.items()
            if now_s - since > self._grace_s
        )

    async def run(self, loop: ControllerLoop, now_s: float) -> None:
        """Prune as many outcomes as fit in one multi."""
        outcomes = loop.outcomes
        registered = {
            (broker.broker_id, broker.incarnation) for broker in loop.image.brokers.values()
        }
        gone = self.gone(outcomes.known_incarnations(), registered, now_s)
        commits = outcomes.prunable(gone)
        pruning = outcomes.plan_pruning(commits, gone)
        if pruning.operations and await self._deletions.commit(loop, pruning.operations):
            outcomes.pruned(pruning)
