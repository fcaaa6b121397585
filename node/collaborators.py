"""The constructors that tests replace to seed bugs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from broker_proxy.authentication.authenticator import SaslAuthenticator
from broker_proxy.forwarding import ForwardingManager
from broker_proxy.learned_acls import LearnedAcls
from controller.controller import Controller
from controller.services import Services, Settings
from controller.store.zookeeper import ZooKeeperStore
from data_plane.partitions import Partitions


@dataclass(frozen=True, slots=True)
class Collaborators:
    """Production uses the defaults; `node.seeded_bugs` replaces them."""

    controller: Callable[[Settings, Services], Controller] = Controller
    store: Callable[..., ZooKeeperStore] = ZooKeeperStore
    learned_acls: Callable[..., LearnedAcls] = LearnedAcls
    authenticator: Callable[..., SaslAuthenticator] = SaslAuthenticator
    forwarding: Callable[..., ForwardingManager] = ForwardingManager
    partitions: Callable[..., Partitions] = Partitions


PRODUCTION = Collaborators()
