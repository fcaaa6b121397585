"""The options that name a source, for each command that reads one."""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from bridgehead.cluster.properties import parse_properties
from cluster_model.znodes.access import ZooKeeperAccess
from node.znode_dump import DumpError, read_access
from rehearse.cluster import ServerProperties
from rehearse.sources.dump import read_dump, read_key
from rehearse.sources.ensemble import read_ensemble
from rehearse.sources.snapshot import read_snapshot
from rehearse.znodes import SourceError, ZnodeTree

_FILE_BYTES_MAX: Final = 1 << 20
_ACCESS: Final = ("zookeeper.", "bridgehead.zookeeper.")


def add_source_arguments(parser: argparse.ArgumentParser, *, dumps: bool = True) -> None:
    """Add the options; `dumps`: the source may be a dump."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--zookeeper", metavar="HOST:PORT[/chroot]")
    source.add_argument("--snapshot", metavar="DIR", type=Path)
    if dumps:
        source.add_argument("--dump", metavar="FILE", type=Path)
        parser.add_argument("--key", metavar="FILE", type=Path)
    parser.add_argument("--transaction-logs", metavar="DIR", type=Path)
    parser.add_argument("--chroot", default="", metavar="PATH")
    parser.add_argument(
        "--server-properties", metavar="FILE", type=Path, action="append", default=[]
    )


def read_source(options: argparse.Namespace) -> tuple[str, ZnodeTree, list[ServerProperties]]:
    """Return the source's name, its tree, and the given properties files.

    Raises:
        SourceError: the source or a file cannot be read.
    """
    properties = [read_properties(file) for file in options.server_properties]
    if options.zookeeper is not None:
        logging.getLogger().addHandler(logging.NullHandler())  # kazoo logs each attempt
        access = _access(properties)
        return options.zookeeper, asyncio.run(read_ensemble(options.zookeeper, access)), properties
    if options.snapshot is not None:
        tree = read_snapshot(options.snapshot, options.chroot, options.transaction_logs)
        return str(options.snapshot), tree, properties
    key = None if options.key is None else read_key(options.key)
    return str(options.dump), read_dump(options.dump, key), properties


def read_properties(file: Path) -> ServerProperties:
    """Return the properties in a file. Raises SourceError."""
    try:
        with file.open("rb") as stream:
            content = stream.read(_FILE_BYTES_MAX + 1)
        if len(content) > _FILE_BYTES_MAX:
            raise ValueError(f"it has more than {_FILE_BYTES_MAX:,} bytes")
        return ServerProperties(str(file), parse_properties(content.decode("iso-8859-1")))
    except OSError as error:
        raise SourceError(f"{file} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise SourceError(f"{file}: {error}") from None


def _access(properties: Iterable[ServerProperties]) -> ZooKeeperAccess:
    """Return how the brokers connect to ZooKeeper, from the first file that says it."""
    for file in properties:
        settings = {n: v for n, v in file.values.items() if n.startswith(_ACCESS)}
        if settings:
            try:
                return read_access(settings)
            except DumpError as error:
                raise SourceError(f"{file.file}: {error}") from None
    return ZooKeeperAccess()
