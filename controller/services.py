"""What a candidate for controller is given: settings, services, and the words for its office."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from cluster_model.authorization import BindAuthorize
from cluster_model.principal import KafkaPrincipal
from cluster_model.quirks import NO_QUIRKS, Quirks
from cluster_model.znode_access import OPEN_ACCESS, ZooKeeperAccess
from controller.apis.base import AdminApi, RandomSource
from controller.background import UncleanElection
from controller.consultations import Policies
from controller.publish import Peer
from controller.request_log import ForwardedRequestLog
from controller.store.port import Mutant
from envelope.messages import Hello
from envelope.principal_serde import PrincipalSerde
from event_log.writer import EventLog

# The host of a sender that is this process's own broker: nothing came over any wire.
THIS_PROCESS: Final = ""


class Office(Enum):
    """Where a candidate stands."""

    STANDBY = "standby"
    CLAIMING = "claiming"
    LOADING = "loading"
    ACTIVE = "active"


class Sender(Protocol):
    """Who sent an Envelope: the broker at the other end of a channel."""

    @property
    def hello(self) -> Hello: ...
    @property
    def principal(self) -> KafkaPrincipal: ...
    @property
    def host(self) -> str:
        """The broker's own address as text; THIS_PROCESS for the broker beside us."""
        ...

    @property
    def connection_id(self) -> str | None:
        """The connection as Kafka writes one; None for the broker in this very process."""
        ...


@dataclass(frozen=True, slots=True)
class Settings:
    """What the controller takes from the broker's configuration."""

    broker_id: int
    zookeeper_connect: str
    session_timeout_ms: int
    connection_timeout_ms: int
    request_timeout_ms: int
    # Beside those that every cluster has; the first node creates them.
    start_up_paths: tuple[str, ...] = ()
    zookeeper_access: ZooKeeperAccess = OPEN_ACCESS
    token_check_interval_ms: int = 3_600_000  # delegation.token.expiry.check.interval.ms
    answers_everywhere: bool = False  # bridgehead.metadata.blocking=cluster
    mutation_quota_samples: int = 11  # controller.quota.window.num
    mutation_quota_window_s: int = 1  # controller.quota.window.size.seconds


@dataclass(frozen=True, slots=True)
class Services:
    """What the node hands in. Nothing here is global."""

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
    envelope_refused: Callable[[], None]  # metric: whatever the reason
    channel_refused: Callable[[], None]  # metric
    zookeeper_answered: Callable[[float], None]  # metric: after so many milliseconds
    office_changed: Callable[[Office], None]
    own_broker: Peer
    policies: Policies | None = None  # None: none is configured
    mutants: frozenset[Mutant] = frozenset()
    quirks: Quirks = NO_QUIRKS
    understands_envelopes: bool = True  # bridgehead.envelope.supported
