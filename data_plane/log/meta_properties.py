"""`meta.properties`: to which cluster and broker a log directory belongs, as in Kafka.

Without it, a broker with the wrong `zookeeper.connect`, or with a ZooKeeper that was emptied, would
find no topics and delete its logs. A KRaft controller knows each log directory by a UUID, which the
file keeps, too (KIP-858).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from cluster_model.znodes.layout import decode_uuid, encode_uuid
from data_plane.log.open_files import replace_file

_log = logging.getLogger(__name__)
META_PROPERTIES: Final = "meta.properties"
_DIRECTORY: Final = "directory.id"
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
    path, values = directory / META_PROPERTIES, _read(directory)
    if values is None:
        return None
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


def _read(directory: Path) -> dict[str, str] | None:
    path = directory / META_PROPERTIES
    if not path.is_file():
        return None
    lines = path.read_bytes().decode("utf-8", "replace").splitlines()
    pairs = [line.partition("=") for line in lines if not line.lstrip().startswith("#")]
    return {key.strip(): value.strip() for key, _, value in pairs}


def write_owner(directory: Path, owner: Owner) -> None:
    """Write the owner of a log directory, unless the file names it already."""
    if read_owner(directory) != owner:
        _write(directory, owner, (_read(directory) or {}).get(_DIRECTORY))


def _write(directory: Path, owner: Owner, directory_id: str | None) -> None:
    lines = [
        f"broker.id={owner.broker_id}",
        f"version={_VERSION}",
        f"cluster.id={owner.cluster_id}",
    ]
    if directory_id is not None:
        lines.append(f"{_DIRECTORY}={directory_id}")
    replace_file(directory / META_PROPERTIES, "\n".join([*lines, ""]).encode())


def directory_ids(
    directories: Iterable[Path], owner: Owner, random: Callable[[int], bytes]
) -> tuple[bytes, ...]:
    """Return the id of each log directory, 16 bytes; write the file where it has none.

    `random` returns the given number of random bytes.

    Raises:
        OSError: a directory belongs to another cluster or broker, its id is damaged, or the file
            cannot be read or written.
    """
    return tuple(_directory_id(directory, owner, random) for directory in directories)


def _directory_id(directory: Path, owner: Owner, random: Callable[[int], bytes]) -> bytes:
    check_owner(directory, owner.broker_id, owner.cluster_id)
    stored = (_read(directory) or {}).get(_DIRECTORY)
    if stored is not None:
        try:
            return decode_uuid(stored)
        except ValueError:
            path = directory / META_PROPERTIES
            raise OSError(f"{path} has an invalid {_DIRECTORY}: delete this line.") from None
    new_id = _new_id(random)
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory, owner, encode_uuid(new_id))
    return new_id


def _new_id(random: Callable[[int], bytes]) -> bytes:
    """Return a random UUID. As in Kafka, none whose text could be taken for an option."""
    while True:
        candidate = bytearray(random(16))
        candidate[6] = candidate[6] & 0x0F | 0x40  # version 4
        candidate[8] = candidate[8] & 0x3F | 0x80
        if not encode_uuid(bytes(candidate)).startswith("-"):
            return bytes(candidate)


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
