"""Plays a scenario on a running cluster, in any tier."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

from chaos.fault import Target
from chaos.scenario import Acknowledged, AnotherController, Hold, Once, Scenario, Sessions, Step
from chaos.workload import Place

Say = Callable[[str], None]

_PROGRESS_WITHIN_S: Final = 90.0
_STOPPED_WITHIN_S: Final = 120.0


class NoProgressError(Exception):
    """The clients or the cluster made no progress. The text is one sentence."""


class Player:
    """Injects the faults of a scenario while a load runs."""

    def __init__(self, scenario: Scenario, source: random.Random, target: Target, say: Say) -> None:
        self._scenario = scenario
        self._source = source
        self._target = target
        self._say = say

    async def play(self, place: Place) -> list[str]:
        """Inject all faults; return, in sentences, what the clients found wrong."""
        load = self._scenario.workload.start(place)
        work = asyncio.create_task(load.run())
        try:
            for step in self._scenario.steps * self._scenario.rounds:
                for _ in range(step.times):
                    await self._step(step, place, work)
            await self._wait(place, work, self._scenario.after)
            missing = self._scenario.expects.acknowledged_min - place.progress.acknowledged
            await self._wait(place, work, missing)
            load.stop()
            done, _ = await asyncio.wait((work,), timeout=_STOPPED_WITHIN_S)
            if not done:
                raise NoProgressError(f"a request took longer than {_STOPPED_WITHIN_S:.0f} s")
            work.result()
            if self._scenario.expects.may_violate_others:
                return []  # The judge decides, whatever the clients see.
            self._say("comparing the brokers' state with the clients' results")
            return await load.wrong()
        finally:
            work.cancel()

    async def _step(self, step: Step, place: Place, work: asyncio.Task[None]) -> None:
        await self._wait(place, work, step.after + self._source.randrange(step.after // 4 + 1))
        before = await self._target.controller()
        done = place.progress.acknowledged
        self._say(f"{done} acknowledged: {step.fault.name}, controller {before}")
        place.disturbances.injected += 1
        async with step.fault.injected_into(self._target):
            await self._hold(step.hold, before, place, work)
        place.disturbances.healed += 1
        await self._target.controller()

    async def _hold(self, hold: Hold, before: int, place: Place, work: asyncio.Task[None]) -> None:
        match hold:
            case Sessions(count):
                await asyncio.sleep(count * self._scenario.topology.session_timeout_ms / 1000)
            case AnotherController():
                await self._target.another_controller(before)
            case Acknowledged(count):
                await self._wait(place, work, count)
            case Once():
                pass

    async def _wait(self, place: Place, work: asyncio.Task[None], count: int) -> None:
        """Wait until `count` more operations are acknowledged."""
        progress = place.progress
        due = progress.acknowledged + count
        reached = asyncio.create_task(progress.reach(due))
        await asyncio.wait(
            (work, reached), timeout=_PROGRESS_WITHIN_S, return_when=asyncio.FIRST_COMPLETED
        )
        if progress.acknowledged >= due:
            return
        reached.cancel()
        if work.done():
            work.result()
            raise NoProgressError("the clients stopped before the scenario was over")
        raise NoProgressError(
            f"{due - progress.acknowledged} of {count} operations were not acknowledged within "
            f"{_PROGRESS_WITHIN_S:.0f} s"
        )
