"""Bugs of a broker that migrates to KRaft: what a real KRaft controller rejects, or waits for."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.broker_registration import BrokerRegistrationRequest, Feature
from broker_proxy.apis.migration.kraft_requests import KraftRequests
from broker_proxy.client_request import ClientRequest
from broker_proxy.migration.kraft_link import KraftLink
from broker_proxy.migration.lifecycle import UNREGISTERED, BrokerLifecycle, Identity
from chaos.bugs.bug import Bug, Change, part, services
from cluster_model.principal import KafkaPrincipal
from envelope.messages import Envelope, EnvelopeReply

_TEST: Final = (
    "unit/broker_proxy/test_migration_requirements.py::test_the_requirement_finds_the_bug"
)


# --- Registration --------------------------------------------------------------------------------


class _ChangedIdentity:
    """An identity whose registration differs from the right one."""

    def __init__(
        self, identity: Identity, change: Callable[[BrokerRegistrationRequest], None]
    ) -> None:
        self._identity = identity
        self._change = change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._identity, name)

    def registration(self) -> BrokerRegistrationRequest:
        message = self._identity.registration()
        self._change(message)
        return message


def _registers(change: Callable[[BrokerRegistrationRequest], None]) -> Change:
    class Registers(BrokerLifecycle):
        def start(self, identity: Identity) -> None:
            changed: Any = _ChangedIdentity(identity, change)
            super().start(changed)

    return part("lifecycle", Registers)


def _as_kraft_broker(message: BrokerRegistrationRequest) -> None:
    message.is_migrating_zk_broker = False


def _of_another_cluster(message: BrokerRegistrationRequest) -> None:
    message.cluster_id = message.cluster_id[::-1]


def _without_listeners(message: BrokerRegistrationRequest) -> None:
    message.listeners = []


def _without_log_dirs(message: BrokerRegistrationRequest) -> None:
    message.log_dirs = []


def _with_all_levels(message: BrokerRegistrationRequest) -> None:
    message.features = [Feature(f.name, 1, f.max_supported_version) for f in message.features]


def _with_new_incarnation(message: BrokerRegistrationRequest) -> None:
    message.incarnation_id = os.urandom(16)


class _NeverAgain(BrokerLifecycle):
    async def step(self, identity: Identity) -> float:
        pause_s = await super().step(identity)
        if self.epoch == UNREGISTERED and self.problem is None:
            self.epoch = 0  # It takes the lost registration for a valid one.
        return pause_s


# --- Heartbeats ----------------------------------------------------------------------------------


class _ReportsNothing(BrokerLifecycle):
    async def _metadata_offset(self) -> int:
        return 0


class _ReportsItsRegistration(BrokerLifecycle):
    async def _metadata_offset(self) -> int:
        return self.epoch


class _RegistersAndSleeps(BrokerLifecycle):
    async def step(self, identity: Identity) -> float:
        if self.epoch != UNREGISTERED:
            return self._intervals.heartbeat_s
        await super().step(identity)
        return self._intervals.heartbeat_s


class _StopsAtOnce(BrokerLifecycle):
    async def leave(self, timeout_s: float) -> bool:
        return False


class _WaitsForEver(BrokerLifecycle):
    async def leave(self, timeout_s: float) -> bool:
        return await super().leave(3600)


class _StaysAtFirstVoter(BrokerLifecycle):
    async def step(self, identity: Identity) -> float:
        self._quorum.is_active(self._quorum.voters[0])
        return await super().step(identity)


# --- Forwarding ----------------------------------------------------------------------------------


class _ForwardsAsItself(KraftLink):
    async def _send_wrapped(self, envelope: Envelope) -> EnvelopeReply:
        principal = self._serde.serialize(KafkaPrincipal("User", "ANONYMOUS"))
        return await super()._send_wrapped(replace(envelope, principal=principal))


class _WrapsItsOwnRequests(KraftLink):
    async def _send_own(self, envelope: Envelope) -> EnvelopeReply:
        return await self._send_wrapped(envelope)


class _KeepsZooKeepersEpoch(KraftLink):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **{**named, "broker_epoch": lambda: 1 << 40})


class _HidesAddresses(KraftLink):
    async def _send_wrapped(self, envelope: Envelope) -> EnvelopeReply:
        return await super()._send_wrapped(replace(envelope, client_address=b""))


# --- The controller's requests -------------------------------------------------------------------


class _AcceptsOldBrokerEpochs(KraftRequests):
    def is_stale_broker_epoch(self, epoch: int) -> bool:
        return False


class _RejectsUnknownBrokerEpochs(KraftRequests):
    def is_stale_broker_epoch(self, epoch: int) -> bool:
        return epoch < self._broker_epoch()


class _AcceptsOldControllers(KraftRequests):
    def is_current_controller(self, epoch: int) -> bool:
        return True


class _AcceptsEverybody(KraftRequests):
    def check(self, request: ClientRequest, message: Any) -> ErrorCode:
        self._authorize_for: Any = lambda _: lambda *_right: True
        return super().check(request, message)


class _ServesAllListeners(KraftRequests):
    def check(self, request: ClientRequest, message: Any) -> ErrorCode:
        self._listeners: Any = (request.client.listener_name,)
        return super().check(request, message)


class _ServesAnyController(KraftRequests):
    def check(self, request: ClientRequest, message: Any) -> ErrorCode:
        return super().check(request, replace(message, is_kraft_controller=True))


class _KeepsWhatIsGone(KraftRequests):
    def replaces_all(self, message: Any) -> bool:
        return False


class _TrustedStates:
    """The states that a KRaft controller left in the broker's cache, as if they were commits."""

    controller_is_kraft = False

    def __init__(self, states: Any) -> None:
        self._states = states

    def __getattr__(self, name: str) -> Any:
        return getattr(self._states, name)


_ROWS: Final[tuple[tuple[str, str, Change], ...]] = (
    (
        "registers_as_kraft_broker",
        "A broker registers without the flag that it migrates from ZooKeeper.",
        _registers(_as_kraft_broker),
    ),
    (
        "registers_in_other_cluster",
        "A broker registers with another cluster id.",
        _registers(_of_another_cluster),
    ),
    (
        "registers_without_listeners",
        "A broker registers without its listeners.",
        _registers(_without_listeners),
    ),
    (
        "registers_without_log_dirs",
        "A broker registers without the ids of its log directories.",
        _registers(_without_log_dirs),
    ),
    (
        "registers_with_all_levels",
        "A broker claims that it supports every level up to its own.",
        _registers(_with_all_levels),
    ),
    (
        "registers_as_new_process",
        "A broker has a new incarnation in each registration.",
        _registers(_with_new_incarnation),
    ),
    (
        "never_registers_again",
        "A broker sends heartbeats with an epoch that the controller does not know.",
        part("lifecycle", _NeverAgain),
    ),
    (
        "heartbeats_without_offset",
        "A broker reports that it has read nothing of the metadata log.",
        part("lifecycle", _ReportsNothing),
    ),
    (
        "heartbeats_with_first_offset",
        "A broker always reports the offset of its registration.",
        part("lifecycle", _ReportsItsRegistration),
    ),
    (
        "sends_no_heartbeats",
        "A broker registers and sends no heartbeats.",
        part("lifecycle", _RegistersAndSleeps),
    ),
    (
        "stops_without_permission",
        "A broker stops without asking for other leaders.",
        part("lifecycle", _StopsAtOnce),
    ),
    (
        "stops_only_with_permission",
        "A broker waits for ever until the controller permits its stop.",
        part("lifecycle", _WaitsForEver),
    ),
    (
        "stays_at_first_voter",
        "A broker asks only the first controller of the quorum.",
        part("lifecycle", _StaysAtFirstVoter),
    ),
    (
        "forwards_as_itself",
        "A broker puts its own principal into Envelopes.",
        part("kraft_link", _ForwardsAsItself),
    ),
    (
        "hides_client_addresses",
        "A broker leaves the client's address out of Envelopes.",
        part("kraft_link", _HidesAddresses),
    ),
    (
        "wraps_its_own_requests",
        "A broker sends AlterPartition in an Envelope.",
        part("kraft_link", _WrapsItsOwnRequests),
    ),
    (
        "keeps_zookeepers_epoch",
        "A broker sends AlterPartition with the epoch of its registration in ZooKeeper.",
        part("kraft_link", _KeepsZooKeepersEpoch),
    ),
    (
        "accepts_old_broker_epochs",
        "A broker accepts requests for its earlier registration.",
        part("kraft_requests", _AcceptsOldBrokerEpochs),
    ),
    (
        "rejects_unknown_broker_epochs",
        "A broker rejects the broker epoch -1, which Kafka always accepts.",
        part("kraft_requests", _RejectsUnknownBrokerEpochs),
    ),
    (
        "accepts_old_controllers",
        "A broker accepts requests of an earlier controller.",
        part("kraft_requests", _AcceptsOldControllers),
    ),
    (
        "accepts_strangers_as_controller",
        "A broker accepts a controller's requests from everybody.",
        part("kraft_requests", _AcceptsEverybody),
    ),
    (
        "serves_controllers_everywhere",
        "A broker serves a controller's requests on listeners for clients.",
        part("kraft_requests", _ServesAllListeners),
    ),
    (
        "serves_any_controller",
        "A broker takes the request of a controller with ZooKeeper for a KRaft controller's.",
        part("kraft_requests", _ServesAnyController),
    ),
    (
        "keeps_what_is_gone",
        "A broker keeps topics that a full UpdateMetadata does not name.",
        part("kraft_requests", _KeepsWhatIsGone),
    ),
)
BUGS: Final[tuple[Bug, ...]] = (
    *(
        Bug(name=name, does=does, apply=apply, found_by="the controller's rules", test=_TEST)
        for name, does, apply in _ROWS
    ),
    Bug(
        name="trusts_krafts_states",
        does="After a rollback a controller takes partition states from the broker's metadata.",
        apply=services(lambda s: replace(s, known_states=_TrustedStates(s.known_states))),
        found_by="the states that the new controller has",
        test="unit/controller/test_known_states.py::"
        "test_states_of_a_kraft_controller_are_read_again",
    ),
)
