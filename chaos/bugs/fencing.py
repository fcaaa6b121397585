"""Bugs that let a superseded controller act: without a fence, or with a fence that has a gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from chaos.bugs.bug import Bug, KafkaBug, Run, part, together
from cluster_model.session_state import ConnectionLostError, SessionLostError, SessionState
from cluster_model.znodes.layout import CommitZnode, ControllerEpochZnode, ControllerZnode
from cluster_model.znodes.operations import Check, Create, Operation, SetData
from controller.controller import Controller
from controller.store.port import Committed, ContentConflictError, Fence
from controller.store.zookeeper import FENCE_OPERATIONS, ZooKeeperStore


class _ZombieStore(ZooKeeperStore):
    """Hides the loss of its session, so that the controller does not resign."""

    def __init__(
        self, connect: str, *, on_state: Callable[[SessionState], None], **others: Any
    ) -> None:
        def hide_loss(state: SessionState) -> None:
            if state is not SessionState.LOST:
                on_state(state)

        super().__init__(connect, on_state=hide_loss, **others)


class _UnfencedStore(_ZombieStore):
    async def elect(self, broker_id: int, now_ms: int) -> Fence | None:
        fence = await super().elect(broker_id, now_ms)
        if fence is not None:
            # Each epoch has its own range of numbers. With equal numbers, the second creation of an
            # outcome znode would fail, and so act as a fence.
            self._commit_number += fence.epoch * 1_000_000
        return fence

    def _fence_operations(self, fence: Fence, number: int) -> list[bytes]:
        return [self.encode(SetData(CommitZnode.path, b"%d" % number))] * FENCE_OPERATIONS


class _SessionReplacingStore(_ZombieStore):
    async def _wait_for_reconnect(self, number: int, lost: ConnectionLostError) -> None:
        if not isinstance(lost, SessionLostError):
            await super()._wait_for_reconnect(number, lost)
            return
        self._session = self._new_session()
        await self._session.open(self._session_timeout_ms / 1000)


class _NeverSuperseded(Controller):
    async def superseded(self) -> None:
        pass


class _UnfencedConfigsStore(ZooKeeperStore):
    _writes_configs = False

    async def commit_pipelined(
        self, fence: Fence, effects: Sequence[Sequence[bytes]]
    ) -> tuple[list[Committed], ContentConflictError | None]:
        committed: list[Committed] = []
        for effect in effects:
            self._writes_configs = any(b"/config/" in operation for operation in effect)
            done, conflict = await super().commit_pipelined(fence, [effect])
            committed += done
            if conflict is not None:
                return committed, conflict
        return committed, None

    def _fence_operations(self, fence: Fence, number: int) -> list[bytes]:
        check, count = super()._fence_operations(fence, number)
        if self._writes_configs:
            check = self.encode(Check(CommitZnode.path, -1))
        return [check, count]


class _TwoStepStore(ZooKeeperStore):
    async def elect(self, broker_id: int, now_ms: int) -> Fence | None:
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


BUGS: Final[tuple[Bug, ...]] = (
    Bug(
        name="fence_off",
        does="A commit checks neither the controller epoch nor the commit counter.",
        apply=together(part("store", _UnfencedStore), part("controller", _NeverSuperseded)),
        found_by="W2",
        test="integration/test_evidence_of_runs.py::test_missing_fence_fails_w2",
    ),
    KafkaBug(
        name="retry_across_sessions",
        does="A commit whose session expired is sent again in a new session.",
        apply=together(part("store", _SessionReplacingStore), part("controller", _NeverSuperseded)),
        found_by="W1, W2, W3 (together with the bug `fence_off`)",
        issue="KAFKA-6082",
        happened="A controller that had lost its session created topics in ZooKeeper. The writes "
        "did not check the controller epoch.",
        run=Run(
            scenario="controller_pause_past_session",
            found_by=("W1", "W2", "W3"),
            together_with=("fence_off",),
        ),
    ),
    Bug(
        name="never_superseded",
        does="A controller ignores that another controller was elected.",
        apply=part("controller", _NeverSuperseded),
        found_by="K7",
        test="integration/test_controller_znode_deleted.py"
        "::test_controller_that_stays_active_fails_k7",
    ),
    KafkaBug(
        name="unfenced_configs",
        does="A commit that writes configs does not check the controller epoch.",
        apply=part("store", _UnfencedConfigsStore),
        found_by="W2",
        issue="KAFKA-16539",
        happened="A write of configs did not check that its writer was still the controller.",
        run=Run(scenario="controller_killed", found_by=("W2",)),
    ),
    Bug(
        name="splits_the_election",
        does="An election creates /controller, and sets the epoch in a second transaction.",
        apply=part("store", _TwoStepStore),
        found_by="W4",
    ),
)
