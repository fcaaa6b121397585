"""Reports about /controller that arrive during or after this node's election."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from broker_proxy.metadata.session import ControllerAddress
from cluster_model.principal import ANONYMOUS
from cluster_model.znodes.layout import NodeAddress
from controller.services import ControllerState
from node.assembly.controller_follower import ControllerFollower, LocalLink

ME, OTHER = ControllerAddress(1, None), ControllerAddress(2, None)


class Candidate:
    """Wins its election. `report` arrives before ZooKeeper's reply; `truth` is in ZooKeeper."""

    follower: ControllerFollower

    def __init__(self, report: ControllerAddress | None, truth: ControllerAddress | None) -> None:
        self.report, self.truth = report, truth
        self.state = ControllerState.STANDBY
        self.elected = asyncio.Event()

    async def elect(self) -> bool:
        self.state = ControllerState.CLAIMING
        self.follower.controller_changed(self.report)
        await asyncio.sleep(0)
        self.state = ControllerState.LOADING
        self.elected.set()
        return True

    async def read_controller_id(self) -> int | None:
        return None if self.truth is None else self.truth.broker_id

    async def superseded(self) -> None:
        """As in `Controller`, a claim cannot be given up before ZooKeeper's reply."""
        if self.state is ControllerState.LOADING:
            self.state = ControllerState.STANDBY


class OwnState:
    broker_id = 1

    def hello(self) -> None:
        """See BrokerState."""


class Forwarding:
    def __init__(self) -> None:
        self.target: Any = None

    def set_target(self, target: object) -> None:
        self.target = target


def follower_of(candidate: Candidate, **others: Any) -> ControllerFollower:
    parts: Any = {"cache": None, "on_update": None, "applied_zxid": None, "is_registered": None}
    parts["forwarding"] = Forwarding()
    parts |= {"read_controller_id": candidate.read_controller_id, **others}
    candidate.follower = ControllerFollower(
        state=cast(Any, OwnState()),
        controller=cast(Any, candidate),
        pinned=None,
        principal=ANONYMOUS,
        credentials=None,
        **parts,
    )
    return candidate.follower


async def state_after_reports(candidate: Candidate) -> ControllerState:
    await asyncio.sleep(0)  # A resignation runs in its own task.
    await candidate.follower.stop()
    return candidate.state


@pytest.mark.parametrize(
    ("report", "truth", "state"),
    [
        pytest.param(OTHER, OTHER, ControllerState.STANDBY, id="another broker"),
        pytest.param(None, None, ControllerState.STANDBY, id="deleted after the election"),
        pytest.param(None, ME, ControllerState.LOADING, id="deleted before the election"),
        pytest.param(ME, ME, ControllerState.LOADING, id="this broker"),
    ],
)
async def test_an_elected_controller_resigns_unless_the_controller_znode_names_it(
    report: ControllerAddress | None, truth: ControllerAddress | None, state: ControllerState
) -> None:
    candidate = Candidate(report, truth)
    follower = follower_of(candidate)
    follower.controller_changed(None)  # starts the election
    await candidate.elected.wait()
    assert await state_after_reports(candidate) is state


@pytest.mark.parametrize(
    ("report", "truth", "state"),
    [
        pytest.param(None, ME, ControllerState.LOADING, id="report older than the election"),
        pytest.param(OTHER, ME, ControllerState.LOADING, id="old report of another broker"),
        pytest.param(None, None, ControllerState.STANDBY, id="deleted"),
        pytest.param(OTHER, OTHER, ControllerState.STANDBY, id="another broker"),
    ],
)
async def test_an_active_controller_resigns_only_if_the_controller_znode_does_not_name_it_now(
    report: ControllerAddress | None, truth: ControllerAddress | None, state: ControllerState
) -> None:
    """In an ensemble the broker session may lag, so a report may be older than the election."""
    candidate = Candidate(ME, truth)
    follower = follower_of(candidate)
    candidate.state = ControllerState.LOADING
    follower.withdraw()  # A candidate that resigns would otherwise start another election.
    follower.controller_changed(report)
    assert await state_after_reports(candidate) is state


async def test_a_node_that_is_about_to_stop_takes_part_in_no_election() -> None:
    candidate = Candidate(None, None)
    follower = follower_of(candidate)
    follower.withdraw()
    follower.controller_changed(None)
    for _ in range(5):
        await asyncio.sleep(0)
    await follower.stop()
    assert candidate.state is ControllerState.STANDBY


class Channel:
    """A channel whose callbacks the test calls."""

    def __init__(self, *_arguments: Any, **events: Any) -> None:
        self.welcome = events["on_welcome"]

    async def close(self) -> None:
        """See ControllerChannel."""


async def test_the_versions_of_an_earlier_controller_do_not_count() -> None:
    channels: list[Channel] = []

    def connect(*arguments: Any, **events: Any) -> Channel:
        channels.append(Channel(*arguments, **events))
        return channels[-1]

    follower = follower_of(Candidate(None, OTHER), new_channel=connect)
    other = ControllerAddress(2, NodeAddress("127.0.0.1:1", "life"))
    follower.controller_changed(other)
    channels[0].welcome({19: (0, 5)})
    assert follower.controller_ranges == {19: (0, 5)}
    follower.controller_changed(ME)
    # This welcome arrived before the controller changed, but is processed afterwards.
    channels[0].welcome({19: (0, 5)})
    assert follower.controller_ranges == {}
    await follower.stop()


async def test_a_request_gets_an_error_if_the_controller_of_the_same_node_raises() -> None:
    class Failing:
        async def handle(self, _envelope: object, _sender: object) -> object:
            raise KeyError("orders")

    link = LocalLink(cast(Any, Failing()), cast(Any, OwnState()), ANONYMOUS)
    envelope = cast(Any, SimpleNamespace(request_id="1.a.0.1.1"))
    reply = await asyncio.wait_for(link.send(envelope), 5)
    assert reply.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


KRAFT = ControllerAddress(1, None, is_kraft=True)  # the id of this broker, which is no mistake


async def test_requests_go_to_a_kraft_controller_that_the_znode_and_the_last_update_name() -> None:
    """If one of them does not name it, they wait: it may have lost /controller."""
    cache, forwarding = SimpleNamespace(controller_is_kraft=False, controller_id=3000), Forwarding()
    kraft = SimpleNamespace(api_ranges={19: (0, 6)})
    candidate = Candidate(None, None)
    follower = follower_of(candidate, cache=cache, forwarding=forwarding, kraft=kraft)
    follower.controller_changed(KRAFT)
    assert forwarding.target is None, "no update has named it"
    assert not follower.is_controller
    cache.controller_is_kraft = True
    follower.forward_to_kraft()
    assert forwarding.target is not None
    assert (forwarding.target.link, forwarding.target.controller_id) == (kraft, 3000)
    assert follower.controller_ranges == {19: (0, 6)}
    follower.withdraw()  # The deletion of /controller starts an election.
    follower.controller_changed(None)
    assert forwarding.target is None, "the znode names nobody"
    follower.forward_to_kraft()
    assert forwarding.target is None
    await follower.stop()


async def test_a_candidate_takes_part_in_no_election_while_a_kraft_controller_is_active() -> None:
    cache = SimpleNamespace(controller_is_kraft=True, controller_id=3000)
    candidate = Candidate(ME, ME)
    follower = follower_of(candidate, cache=cache)
    follower.controller_changed(KRAFT)
    for _ in range(20):  # turns of the event loop
        await asyncio.sleep(0)
    assert candidate.state is ControllerState.STANDBY
    follower.controller_changed(None)
    await candidate.elected.wait()
    await follower.stop()
