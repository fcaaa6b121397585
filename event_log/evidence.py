"""The folder that one run leaves behind, and the manifest that seals it. Formats alone: no I/O.

    run=<run id>/
        run.json                                what is known when a run starts (RunDescription)
        manifest.json                           what there is, once it is sealed (Manifest)
        node=<id>/events-<boot>-<nnnn>.jsonl    events of one boot of a node, segment by segment
        client=<name>/events-<boot>-<nnnn>.jsonl    what a workload asked, and what it was told
        harness=<name>/events-<boot>-<nnnn>.jsonl   what was broken on purpose, which process ended
        zookeeper/member=<n>/log.<zxid>         every member's own transaction log
        zookeeper/first.jsonl  final.jsonl      all znodes when the run began, when it was sealed
        zookeeper/dumps.json                    as of which zxid each of them is
        zookeeper/commits.jsonl                 the logs decoded and merged (event_log.commits)

Lines of events and of commits end with a newline each; a last line without one was cut off.
docs/evidence.md tells the same to people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

MANIFEST_FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
RUN: Final = "run.json"
COMMITS: Final = "zookeeper/commits.jsonl"
FIRST_DUMP: Final = "zookeeper/first.jsonl"
FINAL_DUMP: Final = "zookeeper/final.jsonl"
DUMPS: Final = "zookeeper/dumps.json"  # a dump's path to the zxid as of which it is
EVENT_SOURCES: Final = ("node", "client", "harness")
# Logs of a real Kafka, which has no events: kafka=<broker>/kafka-request.log, …authorizer.log.
KAFKA_LOGS: Final = {
    "kafka-request.log": "kafka_request",
    "kafka-authorizer.log": "kafka_authorizer",
}
FILE_KINDS: Final = (*EVENT_SOURCES, *KAFKA_LOGS.values(), "commits", "dump", "log", "run")


class ManifestError(Exception):
    """A manifest that cannot be used. Its text is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDescription:
    """What is known of a run before anything has happened. None stands for "does not apply"."""

    run_id: str
    scenario: str | None = (
        None  # a scenario breaks things on purpose: only then teeth are asked for
    )
    seed: int | None = None
    # The properties whose verdicts decide; None: all that the run gave occasion to judge.
    expected: list[str] | None = None
    versions: dict[str, str] = field(default_factory=dict)  # bridgehead, python, events
    host_boot_id: str = ""
    started_ms: int = 0
    brokers: int = 0
    session_timeout_ms: int = 0
    operations_min: int = 0  # T1: so many must succeed before and after the faults
    chroot: str = ""  # "" or "/…": what lies outside is somebody else's
    log_folders: list[str] | None = None  # where each member keeps its log; None: out of reach
    super_users: list[str] | None = None  # of the authorizer; None: there is no authorizer
    allow_if_no_acl: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """One file as it was when it was sealed. A file of another size or digest is refused."""

    path: str  # below the run's folder, with "/"
    kind: str  # one of FILE_KINDS
    bytes: int
    sha256: str
    lines: int = 0  # newlines, and one more for a last line that has none; 0 for `log`
    cut: bool = False  # the last line has no newline


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperEvidence:
    """What the transaction logs gave. `holes` are sentences: what is not known for certain."""

    logs: bool  # False: out of reach, and what needs commits is NODATA
    members: int = 0
    first_zxid: int = 0  # judged is what comes after it
    last_zxid: int = 0  # of the last commit
    final_zxid: int | None = None  # as of which final.jsonl is; None: there is none
    denied: int = 0  # proposals that stand in a minority of logs and were never committed
    holes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a sealed run consists of. What is not named here does not belong to it."""

    format: int = MANIFEST_FORMAT
    run: RunDescription
    sealed_ms: int
    zookeeper: ZooKeeperEvidence
    files: list[ManifestFile]


def manifest_to_json(manifest: Manifest) -> dict[str, Any]:
    """Return the object that manifest.json holds."""
    return asdict(manifest)


def manifest_from_json(document: object) -> Manifest:
    """Read the object of a manifest.json.

    Raises:
        ManifestError: it is not one, or of another format. A newer format says so.
    """
    if not isinstance(document, dict):
        raise ManifestError("manifest.json holds no object: seal the run again.")
    found = document.get("format")
    if found != MANIFEST_FORMAT:
        raise ManifestError(
            f"manifest.json has format {found!r}, this program reads {MANIFEST_FORMAT}: judge it "
            "with the version that sealed it, or seal the run again."
        )
    try:
        return Manifest(
            run=_read(RunDescription, document["run"]),
            sealed_ms=document["sealed_ms"],
            zookeeper=_read(ZooKeeperEvidence, document["zookeeper"]),
            files=[_read(ManifestFile, each) for each in document["files"]],
        )
    except (KeyError, TypeError) as wrong:
        raise ManifestError(
            f"manifest.json cannot be read ({wrong}): seal the run again."
        ) from None


def run_from_json(document: object) -> RunDescription:
    """Read the object of a run.json. Raises ManifestError."""
    try:
        run: RunDescription = _read(RunDescription, document)
    except TypeError as wrong:
        raise ManifestError(f"run.json cannot be read: {wrong}.") from None
    return run


_PLAIN_TYPES: Final = {"str": str, "int": int, "bool": bool}


def _read(kind: Any, document: Any) -> Any:
    """Build a dataclass from an object; fields that a later version has added are left out."""
    if not isinstance(document, Mapping):
        raise TypeError(f"{document!r} is no object")
    known = {each.name: each for each in fields(kind)}
    given = {name: value for name, value in document.items() if name in known}
    for name, value in given.items():
        wanted = _PLAIN_TYPES.get(str(known[name].type))
        if wanted is not None and type(value) is not wanted:
            raise TypeError(f"{name} is {value!r}, not of type {known[name].type}")
    if ".." in str(given.get("path", "")).split("/") or str(given.get("path", "")).startswith("/"):
        raise TypeError(f"{given['path']!r} lies outside of the run's folder")
    return kind(**given)


# Why a line is not judged. `wrong_run` alone refuses the whole run (exit 2); a line with any other
# reason is quarantined, and the witness whose file it stands in has a hole.
QUARANTINE_REASONS: Final[Mapping[str, str]] = {
    "utf8": "the line is not UTF-8",
    "not_json": "the line is not JSON; NaN, Infinity and comments are not JSON either",
    "not_an_object": "the line is JSON but no object: an array is one line, not many events",
    "duplicate_key": "a key stands twice in one object: which of the values holds?",
    "overflow": "an integer does not fit 64 bits, signed",
    "wrong_run": "run_id is another run's",
    "schema_newer": "schema_version is newer than this program's",
    "unknown_kind": "no event has that kind",
    "missing_field": "a field that its kind must have is not there",
    "wrong_type": "a field holds another type than its kind says; null where none is allowed",
}
# Counted beside them; none of these is a hole.
#   blank        an empty line
#   duplicate    node, boot and seq of an event that was read already, with equal content
#   cut          a last line without newline, of a boot that has no `stopped`
#   unknown_field    accepted; the field is kept aside
