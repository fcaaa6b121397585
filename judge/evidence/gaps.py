"""Evidence that is known to be missing: whole witnesses, and gaps in a witness.

A witness is a kind of evidence that properties need: `events`, `commits`, `clients` or `kafka`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from event_log.evidence import COMMITS, FIRST_DUMP, Manifest

# The witness of each kind of file. Kinds that are not listed belong to the witness `commits`.
WITNESSES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("node", "harness"), "events"),
    "client": "clients",
    **dict.fromkeys(("kafka_request", "kafka_authorizer"), "kafka"),
}


def witness_of(file_kind: str) -> str:
    """Return the witness that a kind of file belongs to."""
    return WITNESSES.get(file_kind, "commits")


def out_of_reach(manifest: Manifest) -> dict[str, str]:
    """Return a sentence for each of the witnesses `events` and `commits` that the run lacks."""
    gaps = {}
    if not any(listed_file.kind == "node" for listed_file in manifest.files):
        gaps["events"] = "the run has no events of any node"
    if not manifest.zookeeper.logs:
        gaps["commits"] = "ZooKeeper's transaction logs are missing"
    return gaps


def manifest_gaps(manifest: Manifest, missing: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield witness and sentence of each gap that is known before any line is read.

    Args:
        manifest: the run's manifest.
        missing: paths of files that the manifest names and that do not exist.
    """
    if manifest.zookeeper.logs:
        named = {listed_file.path for listed_file in manifest.files}
        absent = [f"{name} is missing" for name in (COMMITS, FIRST_DUMP) if name not in named]
        yield from (("commits", gap) for gap in [*manifest.zookeeper.gaps, *absent])
    for listed_file in sorted(manifest.files, key=lambda file: file.path):
        if listed_file.path in missing:
            yield witness_of(listed_file.kind), f"{listed_file.path} is missing"
