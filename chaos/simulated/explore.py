"""Explores the orders of deliveries, losses and crashes of one small scenario, on simulated nodes.

Two nodes run; one is the controller. A client of the other one creates a topic. In the default
order every message takes a millisecond. A schedule deviates from this order at some messages: each
deviation delays a message, loses it with its connection, kills the receiver, or ends the sender's
ZooKeeper session. All schedules with one deviation are tried, then those with two, and so on.

A history is what each process, and ZooKeeper, received, in order. Schedules that differ only in the
order of messages to different processes are one history: a run that reaches a known state is cut
off. Each history starts in a copy of the Python process in which the cluster has just started.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
import os
import pickle
import random
import shutil
import signal
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from bridgehead.cluster import ClientHistory, RunSettings
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.raw_client.asynchronous import ClusterClient
from chaos.player import NoProgressError
from chaos.recorded_client import RecordedClient
from chaos.simulated.network import Message, NetworkLoop, SimulatedLink
from chaos.simulated.sealed_run import SealedRun
from chaos.simulated.virtual_time import NothingLeftError, virtual_host
from chaos.simulated.zookeeper_session import Multi
from chaos.workloads.topics import creation
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Verdict, judge
from zookeeper_client.wire import MultiResult

_SESSION_TIMEOUT_MS: Final = 2_000
_DELAY_S: Final = 0.001
_HELD_S: Final = 3.0  # longer than the session timeout, and than a channel may be silent
_LATER_WITHIN_S: Final = 0.1
_SETTLED_S: Final = 0.2
_RESPONDED_WITHIN_S: Final = 60.0
_STUCK_AFTER_S: Final = 60  # of processor time
_TOPIC: Final = "explored"
_DRAWN_SHARE: Final = 0.25

# What a schedule may do with a message.
LATER: Final = "later"  # after the next message of another link
HELD: Final = "held"  # for longer than the session timeout
LOST: Final = "lost"  # with its connection, and what is behind it
KILLED: Final = "killed"  # the receiver's process, before the message arrives
EXPIRED: Final = "expired"  # the sender's ZooKeeper session, before the message arrives
ACTIONS: Final = (LATER, HELD, LOST, KILLED, EXPIRED)


class Deviation(NamedTuple):
    """What happens with the message at one place of a run, counted from 0."""

    place: int
    action: str

    def __str__(self) -> str:
        return f"{self.place}:{self.action}"


Schedule = tuple[Deviation, ...]


def schedule_from(text: str) -> Schedule:
    """Return the schedule of a text such as `3:lost,7:killed`. Raises ValueError."""
    schedule = []
    for part in filter(None, text.split(",")):
        place, _, action = part.partition(":")
        if not place.isdigit() or action not in ACTIONS:
            raise ValueError(f"{part!r} is not PLACE:ACTION; actions are {', '.join(ACTIONS)}")
        schedule.append(Deviation(int(place), action))
    return tuple(schedule)


class _Draws(NamedTuple):
    """Draws a schedule at random."""

    random: random.Random
    deviations: int  # at most


@dataclass(slots=True, kw_only=True)
class Explored:
    """One run. `history` is "" if the run was cut off."""

    schedule: Schedule
    history: str = ""
    states: list[bytes] = field(default_factory=list)  # after the last deviation
    places: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)  # for deviations
    texts: list[str] = field(default_factory=list)  # the messages, and what happened with them
    wrong: list[str] = field(default_factory=list)
    elections: int = 0
    result: str = ""  # what the client got
    folder: str = ""  # with the evidence, if it was kept


@dataclass(slots=True)
class Totals:
    """What an exploration has seen so far."""

    runs: int = 0
    cut: int = 0
    histories: set[str] = field(default_factory=set)
    results: Counter[str] = field(default_factory=Counter)
    elections: Counter[int] = field(default_factory=Counter)
    violations: list[Explored] = field(default_factory=list)
    complete: int = -1  # all schedules with so many deviations were tried
    seconds: float = 0.0


class Explorer:
    """Explores with seeded bugs in every node. `folder` gets the evidence of violations."""

    def __init__(self, folder: Path, bugs: frozenset[str], say: Callable[[Totals], None]) -> None:
        self._folder = folder
        self._bugs = bugs
        self._say = say
        self._visited: set[bytes] = set()
        self.totals = Totals()

    def explore(self, *, deviations: int, histories: int, stops: bool) -> Totals:
        """Try all schedules with so many deviations, until there are enough histories.

        With `stops`, the first violation ends the exploration.
        """
        return self._each(lambda run: self._systematic(run, deviations, histories, stops))

    def sample(self, *, deviations: int, runs: int, seed: int, stops: bool) -> Totals:
        """Try random schedules: at a quarter of the messages, with at most so many deviations."""
        return self._each(lambda run: self._random(run, deviations, runs, seed, stops))

    def replay(self, schedule: Schedule) -> Explored:
        """Run one schedule; keep its evidence."""
        ended: list[Explored] = []
        self._each(lambda run: ended.append(run(schedule, True)))
        return ended[0]

    def _each(self, work: Callable[[Callable[..., Explored]], object]) -> Totals:
        began_s = time.monotonic()
        _with_cluster(self._folder, self._bugs, lambda start: work(self._runner(start, began_s)))
        self.totals.seconds = time.monotonic() - began_s
        return self.totals

    def _runner(self, start: _Start, began_s: float) -> Callable[..., Explored]:
        real_monotonic = start.real_monotonic

        def run(schedule: Schedule, keeps: bool = False, source: _Draws | None = None) -> Explored:
            totals = self.totals
            visited = self._visited if not keeps and source is None else set()
            explored = start.run(schedule, visited, keeps=keeps, source=source)
            totals.runs += 1
            self._visited.update(explored.states)
            if explored.history:
                totals.histories.add(explored.history)
                totals.results[explored.result] += 1
                totals.elections[explored.elections] += 1
            else:
                totals.cut += 1
            if explored.wrong:
                totals.violations.append(explored)
            totals.seconds = real_monotonic() - began_s
            self._say(totals)
            return explored

        return run

    def _systematic(
        self, run: Callable[..., Explored], deviations: int, histories: int, stops: bool
    ) -> None:
        level: list[Schedule] = [()]
        for count in range(deviations + 1):
            following: list[Schedule] = []
            # So that a bound on histories does not favour the first messages.
            random.Random(count).shuffle(level)
            for schedule in level:
                explored = run(schedule)
                if stops and explored.wrong:
                    return
                following += [
                    (*schedule, Deviation(place, action))
                    for place, actions in explored.places
                    for action in actions
                ]
                if len(self.totals.histories) >= histories:
                    return
            self.totals.complete = count
            level = following

    def _random(
        self, run: Callable[..., Explored], deviations: int, runs: int, seed: int, stops: bool
    ) -> None:
        for number in range(runs):
            explored = run((), False, _Draws(random.Random(f"{seed} {number}"), deviations))
            if stops and explored.wrong:
                return


# --- The cluster, and its copies -----------------------------------------------------------------


class _Start:
    """A cluster that has just started, of which each run gets a copy."""

    def __init__(self, run: SealedRun, loop: NetworkLoop, folder: Path) -> None:
        self._run = run
        self._loop = loop
        self._folder = folder
        self._contents = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        self.real_monotonic: Callable[[], float] = time.monotonic

    def run(
        self, schedule: Schedule, visited: set[bytes], *, keeps: bool, source: _Draws | None
    ) -> Explored:
        """Run a schedule in a copy of this Python process."""
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reads)
            signal.setitimer(signal.ITIMER_PROF, _STUCK_AFTER_S)  # ends the child
            raise _Continue(schedule, visited, source, writes)
        os.close(writes)
        with os.fdopen(reads, "rb") as pipe:
            data = pipe.read()
        os.waitpid(child, 0)
        if data:
            explored: Explored = pickle.loads(data)  # noqa: S301  # from this program
        else:
            explored = Explored(schedule=schedule, history=f"crashed {schedule}")
            explored.wrong = ["the simulation crashed or did not end: its traceback is above"]
        if explored.wrong or keeps:
            name = "-".join(f"{d.place}-{d.action}" for d in explored.schedule) or "default"
            kept = self._folder.with_name(name)
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(self._folder, kept)
            explored.folder = str(kept)
        self._restore()
        return explored

    def _restore(self) -> None:
        """Make the files what they were: they are open in this process, to append to them."""
        for path in self._folder.rglob("*"):
            if path.is_file():
                if path not in self._contents:
                    path.unlink()
                elif path.read_bytes() != self._contents[path]:
                    path.write_bytes(self._contents[path])


class _Continue(BaseException):
    """Raised in the copy of the process: continue with this schedule."""

    def __init__(
        self, schedule: Schedule, visited: set[bytes], source: _Draws | None, writes: int
    ) -> None:
        super().__init__()
        self.schedule, self.visited = schedule, visited
        self.source, self.writes = source, writes


def _with_cluster(folder: Path, bugs: frozenset[str], work: Callable[[_Start], object]) -> None:
    """Start a cluster, and let `work` run schedules in copies of it."""
    base = folder / "run"
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    errors = logging.FileHandler(base / "nodes.log")  # the warnings of every history would fill it
    errors.setLevel(logging.ERROR)
    logging.basicConfig(handlers=[errors], level=logging.WARNING, force=True)
    loop = NetworkLoop(seed=0)
    loop.network.delay_s = lambda route: _DELAY_S + route.slow_s  # type: ignore[method-assign]
    real_monotonic = time.monotonic
    gc.disable()  # see chaos.simulated.run
    with virtual_host(loop, seed=0):
        run = SealedRun(
            loop,
            0,
            base,
            lambda _sentence: None,
            brokers=2,
            properties={"zookeeper.session.timeout.ms": str(_SESSION_TIMEOUT_MS)},
            settings=RunSettings(seed=0),
            seeded_bugs=bugs,
        )

        async def main() -> None:
            async with run.sealed():
                await run.cluster.start()
                await run.until_complete()
                await asyncio.sleep(1.0)  # until nothing is left of the start
                start = _Start(run, loop, base)
                start.real_monotonic = real_monotonic
                try:
                    work(start)
                except _Continue as copy:
                    await _continue(run, loop, copy)

        loop.run_until_complete(main())


async def _continue(run: SealedRun, loop: NetworkLoop, copy: _Continue) -> None:
    """In the copy: play the schedule, seal and judge the run, send the result, and exit."""
    status = 1
    asyncio._set_running_loop(loop)  # asyncio does not take it over from the parent
    try:
        play = _Play(run, loop, copy)
        explored = await play.play()
        with os.fdopen(copy.writes, "wb") as pipe:
            pickle.dump(explored, pipe)
        status = 0
    except BaseException:
        logging.getLogger(__name__).exception("a run failed")
        raise
    finally:
        os._exit(status)


# --- One run -------------------------------------------------------------------------------------


class _Play:
    """One run of a schedule."""

    def __init__(self, run: SealedRun, loop: NetworkLoop, copy: _Continue) -> None:
        self._run = run
        self._loop, self._network = loop, loop.network
        self._visited = copy.visited
        self._source = copy.source
        self._planned = {deviation.place: deviation.action for deviation in copy.schedule}
        self._last = max(self._planned, default=-1)
        self._explored = Explored(schedule=copy.schedule)
        self._place = 0
        self._seen: defaultdict[str, list[str]] = defaultdict(list)  # by receiver
        self._names: dict[Any, str] = {}  # of connections
        self._counts: Counter[str] = Counter()
        self._waiting: deque[SimulatedLink] = deque()
        self._holding: Counter[str] = Counter()
        self._has_killed = False
        self._is_over = asyncio.Event()

    async def play(self) -> Explored:
        """Send the client's request, and wait for the end of the run."""
        explored, run = self._explored, self._run
        controller = run.cluster.controller()
        (broker,) = set(run.cluster.nodes) - {controller}
        self._network.gate = self._arrives
        self._loop.set_exception_handler(
            lambda _loop, context: explored.wrong.append(repr(context.get("exception")))
        )
        with ClientHistory(run.record.folder, "explore") as history:
            asked = asyncio.create_task(self._ask(broker, history))
            cut = asyncio.create_task(self._is_over.wait())
            await asyncio.wait((asked, cut), return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                return explored  # cut off
            explored.result = asked.result()
            await asyncio.sleep(_SETTLED_S)
            while self._holding or self._waiting:  # noqa: ASYNC110  # virtual time
                await asyncio.sleep(_SETTLED_S)
        self._network.gate = None
        if self._is_over.is_set():
            return explored
        explored.history = self._state().hex()
        await self._end()
        return explored

    async def _ask(self, broker: int, history: ClientHistory) -> str:
        addresses = {broker: self._run.cluster.address(broker)}
        client = RecordedClient(ClusterClient(addresses, "explorer"), history)
        request = creation([_TOPIC])
        request.topics[0].replication_factor = 1  # A node may be gone.
        try:
            async with asyncio.timeout(_RESPONDED_WITHIN_S):
                response = await client.call(broker, ApiKey.CREATE_TOPICS, 4, request)
        except TimeoutError:
            return "nothing"
        except (OSError, EOFError):
            return "connection closed"
        finally:
            client.close()
        return f"error {response.topics[0].error_code}"

    async def _end(self) -> None:
        """Stop the nodes, seal and judge."""
        explored, run = self._explored, self._run
        try:
            await self._until_controller()
            await run.end()
        except (NoProgressError, NothingLeftError) as error:
            explored.wrong.append(str(error))
            return
        history = History(read_run(run.record.folder))
        explored.elections = len(history.of_kind["became_active"]) - 1
        explored.wrong += [
            f"{judgement.row.property}: {judgement.row.why}"
            for judgement in judge(history)
            if judgement.row.verdict in (Verdict.FAIL, Verdict.HANG)
        ]
        if explored.result == "nothing":
            explored.wrong.append("the client got no response")

    async def _until_controller(self) -> None:
        deadline_s = self._loop.time() + _RESPONDED_WITHIN_S
        while self._run.cluster.controller() is None:
            if self._loop.time() > deadline_s:
                raise NoProgressError("no controller became active")
            await asyncio.sleep(_SETTLED_S)

    # --- Messages --------------------------------------------------------------------------------

    def _arrives(self, link: SimulatedLink, message: Message) -> bool:
        """Do with a message what the schedule says; return whether it is held."""
        text = _text_of(message)
        if not text or self._is_over.is_set():
            return False
        place, self._place = self._place, self._place + 1
        receiver, name = self._receiver(link), self._name(link)
        actions = self._actions(receiver)
        action = self._chosen(place, actions)
        self._explored.texts.append(f"{place:3} {text} on {name}{action and f': {action}'}")
        if not action:
            self._deliver(receiver, name)
            if place > self._last and self._source is None:
                self._note_state(place, actions)
            return False
        if action != LATER:  # That shows only in the order of messages.
            self._seen[receiver].append(f"{action} {name}")
        self._act(action, link, message, name)
        return True

    def _chosen(self, place: int, actions: tuple[str, ...]) -> str:
        if self._source is None:
            return self._planned.get(place, "")
        if len(self._explored.schedule) == self._source.deviations:
            return ""
        if self._source.random.random() > _DRAWN_SHARE:
            return ""
        action = self._source.random.choice(actions)
        self._explored.schedule += (Deviation(place, action),)
        return action

    def _actions(self, receiver: str) -> tuple[str, ...]:
        actions = [LATER, HELD, LOST]
        if not self._has_killed and receiver != "zookeeper" and self._alive() == 2:
            actions.append(KILLED)
        if receiver == "zookeeper":
            actions.append(EXPIRED)
        return tuple(actions)

    def _alive(self) -> int:
        return sum(node.is_running for node in self._run.cluster.nodes.values())

    def _deliver(self, receiver: str, name: str) -> None:
        self._counts[name] += 1
        self._seen[receiver].append(f"{name} {self._counts[name]}")
        if self._waiting:
            link = self._waiting.popleft()
            if self._name(link) == name:
                self._waiting.appendleft(link)
            else:
                self._loop.call_soon(link.release, context=self._network.context)

    def _act(self, action: str, link: SimulatedLink, message: Message, name: str) -> None:
        match action:
            case "later":
                self._waiting.append(link)
                self._loop.call_later(
                    _LATER_WITHIN_S, self._release_waiting, link, context=self._network.context
                )
            case "held":
                self._holding[name] += 1
                self._loop.call_later(
                    _HELD_S, self._release, link, name, context=self._network.context
                )
            case "lost":
                self._loop.call_soon(self._lose, link, context=self._network.context)
            case "killed":
                self._has_killed = True
                node = self._run.cluster.nodes[int(self._receiver(link))]
                self._loop.call_soon(self._kill, node, context=self._network.context)
            case "expired":
                self._loop.call_soon(
                    self._expire, link, message.arguments[2], context=self._network.context
                )

    def _release_waiting(self, link: SimulatedLink) -> None:
        if link in self._waiting:
            self._waiting.remove(link)
            link.release()

    def _release(self, link: SimulatedLink, name: str) -> None:
        self._holding[name] -= 1
        self._holding += Counter()  # forgets zeros
        link.release()

    def _lose(self, link: SimulatedLink) -> None:
        link.held.clear()
        link.connection.reset()

    def _kill(self, node: Any) -> None:
        self._run.record.fault_injected("kill", node.id)
        node.kill()
        self._run.record.note_ends([node])

    def _expire(self, link: SimulatedLink, session_id: int) -> None:
        self._run.service.end_session(session_id)
        link.release()

    # --- States ----------------------------------------------------------------------------------

    def _receiver(self, link: SimulatedLink) -> str:
        connection = link.connection
        process = connection.server if link.path.is_request else connection.client
        return "zookeeper" if process is None else process.name

    def _name(self, link: SimulatedLink) -> str:
        """Return a name that is the same in all runs with the same history."""
        connection = link.connection
        if connection not in self._names:
            client = "" if connection.client is None else connection.client.name
            kind = f"{client} to {connection.service}"
            self._counts[kind] += 1
            self._names[connection] = f"{kind} #{self._counts[kind]}"
        return f"{self._names[connection]}{'' if link.path.is_request else ' back'}"

    def _state(self) -> bytes:
        held = sorted(self._name(link) for link in self._waiting)
        seen = sorted(self._seen.items())
        text = repr((seen, held, sorted(self._holding.items()), self._has_killed))
        return hashlib.blake2b(text.encode(), digest_size=12).digest()

    def _note_state(self, place: int, actions: tuple[str, ...]) -> None:
        state = self._state()
        if state in self._visited:
            self._is_over.set()
            return
        self._explored.states.append(state)
        self._explored.places.append((place, actions))


def _text_of(message: Message) -> str:
    """Return what a message of the protocol is; "" for all other messages."""
    match message.arguments:
        case [batch] if getattr(batch, "envelopes", None):
            return f"Envelope, attempt {batch.envelopes[0].attempt}"
        case [_, batch] if getattr(batch, "replies", None):
            return f"reply {batch.replies[0].error_code}"
        case [_, batch] if getattr(batch, "updates", None):
            return "metadata"
        case [_, _, _, Multi() as execute]:
            return f"multi of {len(execute.operations)} operations"
        case [_, MultiResult() as result, _]:
            return "multi applied" if result.failed_index is None else "multi rejected"
        case [_, "data" | "child", str(path), _]:
            return f"watch of {path}"
    return ""
