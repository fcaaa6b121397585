"""`meta.properties`: to which cluster and broker a log directory belongs, as in Kafka.

Without it, a broker with the wrong `zookeeper.connect`, or with a ZooKeeper that was emptied, would
find no topics and delete its logs.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final, NamedTuple

from data_plane.log.open_files import replace_file

_log = logging.getLogger(__name__)
META_PROPERTIES: Final = "meta.properties"
_VERSION: Final = "0"  # Kafka with ZooKeeper; 1 is KRaft's


class Owner(NamedTuple):
    """Whose logs a directory has. An empty cluster id: the file does not name a cluster."""

    cluster_id: str
    broker_id: int


def read_owner(directory: Path) -> Owner | None:
    """Return the owner of a log directory; None if it has none, or the file is damaged.

    Raises:
        OSError: the directory belongs to a broker without ZooKeeper.
    """
    path = directory / META_PROPERTIES
    if not path.is_file():
        return None
    lines = path.read_bytes().decode("utf-8", "replace").splitlines()
    pairs = [line.partition("=") for line in lines if not line.lstrip().startswith("#")]
    values = {key.strip(): value.strip() for key, _, value in pairs}
    if values.get("version", _VERSION) != _VERSION:
        raise OSError(
            f"{path} has version {values['version']!r}, so {directory} belongs to a broker without "
            "ZooKeeper: set log.dirs to another directory."
        )
    try:
        return Owner(values.get("cluster.id", ""), int(values["broker.id"]))
    except (KeyError, ValueError):
        _log.warning("%s is damaged and is ignored", path)
        return None


def write_owner(directory: Path, owner: Owner) -> None:
    """Write the owner of a log directory, unless the file names it already."""
    if read_owner(directory) != owner:
        lines = (
            f"broker.id={owner.broker_id}",
            f"version={_VERSION}",
            f"cluster.id={owner.cluster_id}",
        )
        replace_file(directory / META_PROPERTIES, "\n".join([*lines, ""]).encode())


def check_owner(directory: Path, broker_id: int, cluster_id: str | None) -> None:
    """Raise OSError if the directory belongs to another cluster or broker.

    `cluster_id` is ZooKeeper's; None if ZooKeeper names no cluster.
    """
    owner = read_owner(directory)
    if owner is None:
        return
    path = directory / META_PROPERTIES
    if owner.broker_id != broker_id:
        raise OSError(
            f"broker.id is {broker_id}, but {path} names broker {owner.broker_id}: correct "
            "broker.id or log.dirs, or remove the directory if it is a new broker."
        )
    if owner.cluster_id not in ("", cluster_id):
        named = "names no cluster" if cluster_id is None else f"names cluster {cluster_id}"
        raise OSError(
            f"ZooKeeper {named}, but {path} names cluster {owner.cluster_id}: correct "
            "zookeeper.connect, or restore ZooKeeper's data. Without them this broker would "
            "delete its logs. To start without the logs, remove the directory."
        )
