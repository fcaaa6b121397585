"""Generates credentials for ZooKeeper, if znodes get ACLs and the user gives no credentials.

The credentials are generated once and kept, because the ACLs of existing znodes name them. Only
the owner of the data directory can read the file.
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
# The nodes own this chroot. Everyone has DELETE on /, which is enough to delete a child of /. So
# without a chroot everyone could delete /controller.
CHROOT: Final = "/cluster"


def wants_acls(settings: ClusterSettings) -> bool:
    """Return whether the znodes of a cluster get ACLs."""
    return settings.properties.get("zookeeper.set.acl", "false").strip().lower() == "true"


def embedded_chroot(settings: ClusterSettings) -> str:
    """Return the chroot in the embedded ZooKeeper: none, unless znodes get ACLs."""
    return CHROOT if wants_acls(settings) else ""


def with_credentials(settings: ClusterSettings) -> ClusterSettings:
    """Return `settings` with credentials if needed. Raises OSError: the folder cannot be used."""
    if not wants_acls(settings) or any(name in settings.properties for name in NAMES):
        return settings
    file = channel_folder(settings) / "zookeeper.json"
    credentials = read_json(file)
    if credentials is None or set(credentials) != set(NAMES):
        users = ("controller", "broker")
        credentials = {
            n: f"{u}:{secrets.token_urlsafe(24)}" for n, u in zip(NAMES, users, strict=True)
        }
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(file, json.dumps(credentials).encode())
    return dataclasses.replace(settings, properties={**settings.properties, **credentials})
