"""Credentials for ZooKeeper, made where znodes shall have ACLs and none were given.

They are made once, for the owner's eyes only: the znodes of yesterday belong to them.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
from typing import Final

from bridgehead.cluster.broker_certificates import channel_folder
from bridgehead.cluster.data_directory import read_json, write_private
from bridgehead.cluster.settings import ClusterSettings

NAMES: Final = (
    "bridgehead.zookeeper.controller.credential",
    "bridgehead.zookeeper.broker.credential",
)
# Whoever may delete below / may delete /controller, and / is open: the nodes own their chroot.
CHROOT: Final = "/cluster"


def wants_acls(settings: ClusterSettings) -> bool:
    """Whether the znodes of a cluster get ACLs."""
    return settings.properties.get("zookeeper.set.acl", "false").strip().lower() == "true"


def embedded_chroot(settings: ClusterSettings) -> str:
    """Where the embedded ZooKeeper keeps a cluster: at its root, unless znodes have ACLs."""
    return CHROOT if wants_acls(settings) else ""


def with_credentials(settings: ClusterSettings) -> ClusterSettings:
    """`settings` with what they want and do not have. Raises OSError: the folder is no good."""
    if not wants_acls(settings) or any(name in settings.properties for name in NAMES):
        return settings
    file = channel_folder(settings) / "zookeeper.json"
    made = read_json(file)
    if made is None or set(made) != set(NAMES):
        users = ("controller", "broker")
        made = {n: f"{u}:{secrets.token_urlsafe(24)}" for n, u in zip(NAMES, users, strict=True)}
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(file, json.dumps(made).encode())
    return dataclasses.replace(settings, properties={**settings.properties, **made})
