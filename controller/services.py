"""Settings and collaborators of a controller candidate, and its states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from cluster_model.acls.authorization import BindAuthorize
from cluster_model.principal import KafkaPrincipal
from cluster_model.quirks import NO_QUIRKS, Quirks
from cluster_model.session_state import SessionState
from controller.apis.base import AdminApi, RandomSource
from controller.loop.background_jobs import UncleanElection
from controller.loop.policy_evaluation import Policies
from controller.requests.request_log import ForwardedRequestLog
from controller.store.load import KnownStates
from controller.store.outcomes import Incarnation
from controller.store.zookeeper import ZooKeeperStore
from envelope.messages import Hello, MetadataUpdate
from envelope.principal_serde import PrincipalSerde
from event_log.writer import EventLog

# The host of a sender in this process: its requests did not cross a network.
THIS_PROCESS: Final = ""


class ControllerState(Enum):
    """Changes from standby to claiming, loading, active, and back to standby."""

    STANDBY = "standby"
    CLAIMING = "claiming"
    LOADING = "loading"
    ACTIVE = "active"


class Sender(Protocol):
    """The broker that sent an Envelope."""

    @property
    def hello(self) -> Hello: ...
    @property
    def principal(self) -> KafkaPrincipal: ...
    @property
    def host(self) -> str:
        """The broker's own address; THIS_PROCESS for the broker of this node."""
        ...

    @property
    def connection_id(self) -> str | None:
        """The connection in Kafka's notation; None for the broker of this node."""
        ...


class Peer(Protocol):
    """A broker that receives metadata."""

    def push(self, update: MetadataUpdate, delay_s: float, /) -> None:
        """Queue the update; send it after at most `delay_s`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The controller's part of the broker configuration."""

    broker_id: int
    session_timeout_ms: int
    connection_timeout_ms: int
    request_timeout_ms: int
    start_up_paths: tuple[str, ...] = ()  # persistent paths that only some clusters need
    token_check_interval_ms: int = 3_600_000  # delegation.token.expiry.check.interval.ms
    waits_for_brokers: bool = False  # bridgehead.metadata.blocking=cluster
    stores_records: bool = False  # bridgehead.data.plane
    update_delay_s: float = 0.0  # see Publisher
    mutation_quota_samples: int = 11  # controller.quota.window.num
    mutation_quota_window_s: int = 1  # controller.quota.window.size.seconds


@dataclass(frozen=True, slots=True)
class Services:
    """The controller's collaborators, built by the node."""

    # Called once per candidacy. The argument is called when the state of the session changes.
    new_store: Callable[[Callable[[SessionState], None]], ZooKeeperStore]
    apis: Mapping[int, AdminApi]
    serde: PrincipalSerde
    may_send_envelopes: Callable[[Sender], bool]  # CLUSTER_ACTION on Cluster
    bind_authorize: BindAuthorize
    unclean_election: UncleanElection
    random: RandomSource
    new_topic_id: Callable[[], bytes]
    log: EventLog
    request_log: ForwardedRequestLog
    now_s: Callable[[], float]
    now_ms: Callable[[], int]
    authorization_failed: Callable[[], None]  # metric
    envelope_rejected: Callable[[], None]  # metric
    channel_rejected: Callable[[], None]  # metric
    state_changed: Callable[[ControllerState], None]
    own_broker: Peer
    known_states: KnownStates  # from the metadata of this node's broker
    # The incarnation and the floor of this node's broker, which resends nothing below the floor.
    own_floor: Callable[[], tuple[Incarnation, int]]
    policies: Policies | None = None  # None if none is configured
    quirks: Quirks = NO_QUIRKS
    understands_envelopes: bool = True  # bridgehead.envelope.supported
