"""The constructors of a node's parts that tests and simulations replace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from broker_proxy.apis.migration.kraft_requests import KraftRequests
from broker_proxy.authentication.authenticator import SaslAuthenticator
from broker_proxy.connections.server import KafkaServer
from broker_proxy.forwarding.manager import ForwardingManager
from broker_proxy.metadata.learned_acls import LearnedAcls
from broker_proxy.metadata.session import ZooKeeperWatcher
from broker_proxy.migration.kraft_link import KraftLink
from broker_proxy.migration.lifecycle import BrokerLifecycle
from controller.controller import Controller
from controller.direct.session import DirectSession
from controller.services import Services, Settings
from controller.store.zookeeper import ZooKeeperStore
from data_plane.groups.service import GroupService
from data_plane.partitions import Partitions
from envelope.channel import ControllerChannel
from envelope.server import EnvelopeServer, serve_envelopes


@dataclass(frozen=True, slots=True)
class Collaborators:
    """Production uses the defaults; `chaos.bugs` and `chaos.simulated` replace them."""

    controller: Callable[[Settings, Services], Controller] = Controller
    store: Callable[..., ZooKeeperStore] = ZooKeeperStore
    direct_session: Callable[..., DirectSession] = DirectSession
    learned_acls: Callable[..., LearnedAcls] = LearnedAcls
    authenticator: Callable[..., SaslAuthenticator] = SaslAuthenticator
    forwarding: Callable[..., ForwardingManager] = ForwardingManager
    partitions: Callable[..., Partitions] = Partitions
    groups: Callable[..., GroupService] = GroupService
    server: Callable[..., KafkaServer] = KafkaServer
    watcher: Callable[..., ZooKeeperWatcher] = ZooKeeperWatcher
    channel: Callable[..., ControllerChannel] = ControllerChannel
    lifecycle: Callable[..., BrokerLifecycle] = BrokerLifecycle
    kraft_link: Callable[..., KraftLink] = KraftLink
    kraft_requests: Callable[..., KraftRequests] = KraftRequests
    serve_envelopes: Callable[..., Awaitable[EnvelopeServer]] = serve_envelopes


PRODUCTION = Collaborators()
