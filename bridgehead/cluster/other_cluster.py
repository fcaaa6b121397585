"""Another cluster's metadata in the ZooKeeper that a user names: whose they are, and a copy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from bridgehead.application import module_command, module_environment
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.settings import ZOOKEEPER_ACCESS, ClusterSettings

_TIMEOUT_S: Final = 120.0


def rejection(
    connect: str, contents: Mapping[str, Any], *, own_id: str | None, adopt: bool
) -> str | None:
    """Return why a cluster must not use a ZooKeeper with these contents; None if it may.

    Args:
        connect: the ZooKeeper, for the sentence.
        contents: what `look` returned.
        own_id: the id of the cluster that this data directory used there before.
        adopt: the user wants this cluster to own the metadata.
    """
    cluster_id, brokers = contents["cluster_id"], contents["brokers"]
    if cluster_id is None or cluster_id == own_id:
        return None
    copy = "--read-only starts a cluster with a copy of it (docs/guides/your-metadata.md)."
    if brokers:
        return (
            f"{connect} belongs to the cluster {cluster_id}, whose brokers {', '.join(brokers)} "
            f"are registered: stop them first, and wait until their sessions have expired. {copy}"
        )
    if not adopt:
        return (
            f"{connect} has the metadata of the cluster {cluster_id} ({contents['topics']} "
            f"topics): --adopt lets this cluster own and change it. {copy}"
        )
    return None


async def look(connect: str, settings: ClusterSettings) -> dict[str, Any]:
    """Return `cluster_id`, `brokers` and `topics` of a ZooKeeper. Raises ClusterError."""
    return await _run(settings, "look", connect)


async def copy(connect: str, target: str, settings: ClusterSettings) -> int:
    """Copy the metadata of a cluster into an empty ZooKeeper; return the number of znodes.

    Raises:
        ClusterError: it cannot be read, or there is no cluster.
    """
    return int((await _run(settings, "copy", connect, target))["znodes"])


async def _run(settings: ClusterSettings, *arguments: str) -> dict[str, Any]:
    access = {n: v for n, v in settings.properties.items() if n.startswith(ZOOKEEPER_ACCESS)}
    process = await asyncio.create_subprocess_exec(
        *module_command("node.other_cluster", *arguments),
        env=module_environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            output, errors = await process.communicate(json.dumps(access).encode() + b"\n")
    except TimeoutError:
        process.kill()
        await process.wait()
        raise ClusterError(f"{arguments[1]} was not read within {_TIMEOUT_S:g} s.") from None
    if process.returncode != 0:
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        raise ClusterError(lines[-1] if lines else f"{arguments[1]} cannot be read.")
    result: dict[str, Any] = json.loads(output)
    return result
