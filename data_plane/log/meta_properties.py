"""meta.properties: the file in a log directory with the directory's id (KIP-858).

A KRaft controller knows each log directory of a broker by a UUID, which stays the same when the
broker restarts. The file has Kafka's names, in version 0, as brokers with ZooKeeper write it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from bridgehead.cluster.properties import format_properties, parse_properties
from cluster_model.znodes.layout import decode_uuid, encode_uuid
from data_plane.log.open_files import replace_file

NAME: Final = "meta.properties"
_CLUSTER: Final = "cluster.id"
_BROKER: Final = "broker.id"
_DIRECTORY: Final = "directory.id"


class MetaPropertiesError(Exception):
    """The file belongs to another broker or cluster, or is damaged. The operator sees the text."""


def directory_ids(
    folders: Iterable[Path], broker_id: int, cluster_id: str, random: Callable[[int], bytes]
) -> tuple[bytes, ...]:
    """Return the id of each directory, 16 bytes; write the file where it has none.

    `random` returns the given number of random bytes.

    Raises:
        MetaPropertiesError: a file cannot be used.
        OSError: a file cannot be read or written.
    """
    return tuple(_directory_id(folder / NAME, broker_id, cluster_id, random) for folder in folders)


def _directory_id(
    file: Path, broker_id: int, cluster_id: str, random: Callable[[int], bytes]
) -> bytes:
    of_broker = {_BROKER: str(broker_id), _CLUSTER: cluster_id}
    stored = _read(file)
    for name, value in of_broker.items():
        if stored.get(name, value) != value:
            raise MetaPropertiesError(
                f"{file} has {name}={stored[name]}, but this broker has {value}: use the log "
                "directories of this broker, or delete the file if the data is this broker's."
            )
    if _DIRECTORY in stored:
        try:
            return decode_uuid(stored[_DIRECTORY])
        except ValueError:
            raise MetaPropertiesError(f"{file} has an invalid {_DIRECTORY}: delete it.") from None
    new_id = _new_id(random)
    file.parent.mkdir(parents=True, exist_ok=True)
    text = format_properties(
        {"version": "0", **stored, **of_broker, _DIRECTORY: encode_uuid(new_id)}
    )
    replace_file(file, text.encode())
    return new_id


def _read(file: Path) -> dict[str, str]:
    if not os.path.lexists(file):
        return {}
    try:
        return dict(parse_properties(file.read_text()))
    except ValueError as error:
        raise MetaPropertiesError(f"{file} cannot be read: {error}") from None


def _new_id(random: Callable[[int], bytes]) -> bytes:
    """Return a random UUID. As in Kafka, none whose text could be taken for an option."""
    while True:
        candidate = bytearray(random(16))
        candidate[6] = candidate[6] & 0x0F | 0x40  # version 4
        candidate[8] = candidate[8] & 0x3F | 0x80
        if not encode_uuid(bytes(candidate)).startswith("-"):
            return bytes(candidate)
