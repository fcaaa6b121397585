"""Signals: a part of a node reports its changes to parts that are built later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVarTuple

from bridgehead.authorizer import ResourcePattern
from broker_proxy.metadata.session import ControllerAddress
from cluster_model.acls.bindings import Entries
from cluster_model.delegation_tokens import DelegationToken
from cluster_model.records import ConfigResource
from cluster_model.session_state import SessionState

Args = TypeVarTuple("Args")


class Signal(Generic[*Args]):
    """Calls its subscribers in the order in which they subscribed."""

    def __init__(self) -> None:
        self._subscribers: list[Callable[[*Args], object]] = []

    def subscribe(self, *subscribers: Callable[[*Args], object]) -> None:
        """Add subscribers."""
        self._subscribers += subscribers

    def __call__(self, *args: *Args) -> None:
        """Call every subscriber."""
        for subscriber in self._subscribers:
            subscriber(*args)


@dataclass(frozen=True, slots=True)
class Signals:
    """The signals of one node. `node.assembly.parts` connects them."""

    # Reported by the broker session:
    session_changed: Signal[SessionState] = field(default_factory=Signal)
    registered: Signal[int] = field(default_factory=Signal)  # the broker epoch
    controller_changed: Signal[ControllerAddress | None] = field(default_factory=Signal)
    config_changed: Signal[ConfigResource, Mapping[str, str]] = field(default_factory=Signal)
    # The broker read the configs of all users or of all client ids, by stored name.
    users_read: Signal[Mapping[str, Mapping[str, str]]] = field(default_factory=Signal)
    client_ids_read: Signal[Mapping[str, Mapping[str, str]]] = field(default_factory=Signal)
    # The broker read ACLs (with their znode's version) or a token from ZooKeeper; None: deleted.
    acl_read: Signal[ResourcePattern, Entries, int | None] = field(default_factory=Signal)
    token_read: Signal[str, DelegationToken | None] = field(default_factory=Signal)
    # The content of the metadata cache changed.
    metadata_changed: Signal[()] = field(default_factory=Signal[()])
    # The broker applied everything up to this zxid, notifications included.
    zxid_applied: Signal[int] = field(default_factory=Signal)
