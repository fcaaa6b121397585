"""A simulated cluster as a target of faults."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from bridgehead.cluster.event_lines import EventLines
from bridgehead.cluster.run_record import RunRecord
from chaos.player import NoProgressError
from chaos.recorded_client import recorded_fault
from chaos.simulated.network import Direction
from chaos.simulated.nodes import SimulatedCluster, SimulatedNode
from chaos.simulated.virtual_time import Process
from chaos.simulated.zookeeper_session import LostCommit, SimulatedSession
from cluster_model.znodes.operations import Delete

_POLL_S: Final = 0.05
_IN_FLIGHT_POLL_S: Final = 0.004
_HELD_WITHIN_S: Final = 60.0
_CONTROLLER_WITHIN_S: Final = 30.0
_SESSION_TIMEOUT_MS: Final = 10_000


class SimulatedTarget:
    """One running cluster; implements chaos.fault.Target and chaos.fault.Network."""

    def __init__(self, cluster: SimulatedCluster, record: RunRecord, lines: EventLines) -> None:
        """`lines` records the events of the harness."""
        self._cluster = cluster
        self._record = record
        self._lines = lines
        self.brokers = tuple(cluster.nodes)

    @property
    def network(self) -> SimulatedTarget:
        return self

    async def controller(self) -> int:
        return await self._wait_for_controller(None)

    async def another_controller(self, before: int) -> int:
        return await self._wait_for_controller(before)

    async def _wait_for_controller(self, other_than: int | None) -> int:
        loop = self._cluster.loop
        deadline_s = loop.time() + _CONTROLLER_WITHIN_S
        while True:
            controller_id = self._cluster.controller()
            if controller_id is not None and controller_id != other_than:
                return controller_id
            if loop.time() > deadline_s:
                raise NoProgressError(
                    f"no controller became active within {_CONTROLLER_WITHIN_S:g} s"
                )
            await asyncio.sleep(_POLL_S)

    # --- Processes -------------------------------------------------------------------------------

    def _node(self, broker: int) -> SimulatedNode:
        return self._cluster.nodes[broker]

    def _process(self, broker: int) -> Process:
        process = self._node(broker).process
        assert process is not None, f"broker {broker} does not run"
        return process

    async def kill(self, broker: int) -> None:
        self._record.fault_injected("kill", broker)
        self._node(broker).kill()

    async def stop(self, broker: int) -> None:
        self._record.fault_injected("stop", broker)
        await self._node(broker).stop()

    async def start(self, broker: int) -> None:
        self._record.note_ends([self._node(broker)])
        await self._node(broker).start()

    async def pause(self, broker: int) -> None:
        self._process(broker).is_paused = True

    async def resume(self, broker: int) -> None:
        self._cluster.loop.resume(self._process(broker))

    async def hold_at(self, failpoint: str) -> int:
        held: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._cluster.armed[failpoint] = held
        try:
            async with asyncio.timeout(_HELD_WITHIN_S):
                return await held
        except TimeoutError:
            raise NoProgressError(f"no process reached {failpoint}") from None

    async def expire(self, broker: int) -> None:
        node = self._node(broker)
        assert node.node is not None
        self._record.fault_injected("expire", broker)
        await node.expire_controller()

    async def move_clock(self, broker: int, offset_s: int) -> None:
        self._process(broker).wall_offset_ns = offset_s * 1_000_000_000

    async def delete_znode(self, path: str) -> None:
        session = SimulatedSession(
            self._cluster.service,
            session_timeout_ms=_SESSION_TIMEOUT_MS,
            on_state=lambda _state: None,
        )
        await session.open(_SESSION_TIMEOUT_MS / 1000)
        try:
            await session.multi([session.encode(Delete(path))])
        finally:
            await session.close()

    def recorded(self, action: str, target: int | str) -> contextlib.AbstractContextManager[None]:
        return recorded_fault(self._lines, action, target)

    # --- Links -----------------------------------------------------------------------------------

    def cut_from_zookeeper(self, broker: int) -> contextlib.AbstractContextManager[None]:
        service = f"zookeeper of {broker}"
        return self._cluster.loop.network.cut(
            Direction(service, is_request=True), Direction(service, is_request=False)
        )

    def cut_from_peers(
        self, broker: int, *, requests: bool, replies: bool
    ) -> contextlib.AbstractContextManager[None]:
        service = f"envelopes of {broker}"
        wanted = {True: requests, False: replies}
        paths = [Direction(service, is_request) for is_request, on in wanted.items() if on]
        return self._cluster.loop.network.cut(*paths)

    def slow_peers(self, broker: int, seconds: float) -> contextlib.AbstractContextManager[None]:
        return self._cluster.loop.network.slow(Direction(f"envelopes of {broker}", True), seconds)

    async def reset_peers(self, broker: int) -> None:
        network, service = self._cluster.loop.network, f"envelopes of {broker}"
        while True:
            if network.has_unfinished(service):
                network.reset(service)
                return
            await asyncio.sleep(_IN_FLIGHT_POLL_S)

    async def lose_commit(self, broker: int, *, reply: bool) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._cluster.service.to_lose[self._process(broker)] = LostCommit(reply, done)
        await done
