"""The evidence folder of a run, and the manifest that seals it. Formats only, no I/O.

    run=<run id>/
        run.json                                the run, as known at its start (RunDescription)
        manifest.json                           the sealed files (Manifest)
        manifest.hmac                           its signature, if there is a key (judge.seals)
        node=<id>/events-<boot>-<nnnn>.jsonl    events of one boot of a node, segment by segment
        client=<name>/events-<boot>-<nnnn>.jsonl    operations and results of a workload
        harness=<name>/events-<boot>-<nnnn>.jsonl   injected faults, ended processes
        zookeeper/member=<n>/log.<zxid>         the transaction log of each member
        zookeeper/first.jsonl  final.jsonl      all znodes before and after the nodes ran
        zookeeper/dumps.json                    the zxid of each dump
        zookeeper/commits.jsonl                 the decoded and merged logs (event_log.commits)

Each complete line of events or commits ends with a newline. If the last line has none, it was cut
off. See docs/evidence.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

MANIFEST_FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
RUN: Final = "run.json"
COMMITS: Final = "zookeeper/commits.jsonl"
FIRST_DUMP: Final = "zookeeper/first.jsonl"
FINAL_DUMP: Final = "zookeeper/final.jsonl"
DUMPS: Final = "zookeeper/dumps.json"  # path of a dump -> its zxid
# How a file is named below the run's folder. Such a name is safe in a Spark path and on a terminal.
RUN_PATH: Final = re.compile(r"(?!.*\.\.(?:/|$))[A-Za-z0-9.=_-]+(?:/[A-Za-z0-9.=_-]+)*")
# A manifest needs some 250 bytes for a file.
MANIFEST_BYTES_MAX: Final = 16 << 20
DESCRIPTION_BYTES_MAX: Final = 1 << 20  # run.json, dumps.json
EVENT_SOURCES: Final = ("node", "client", "harness")
# Logs of a real Kafka, which has no events: kafka=<broker>/kafka-request.log and so on.
KAFKA_LOGS: Final = {
    "kafka-request.log": "kafka_request",
    "kafka-authorizer.log": "kafka_authorizer",
}
FILE_KINDS: Final = (*EVENT_SOURCES, *KAFKA_LOGS.values(), "commits", "dump", "log", "run")


class ManifestError(Exception):
    """A manifest is invalid. The message is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDescription:
    """A run, as known at its start. None means "does not apply" unless a comment says otherwise."""

    run_id: str
    scenario: str | None = None  # its name; None: no faults, so L7 and T1 do not apply
    seed: int | None = None
    # The properties whose verdicts determine the exit code; None: all that apply to the run.
    expected: list[str] | None = None
    versions: dict[str, str] = field(default_factory=dict)  # bridgehead, python, events
    host_boot_id: str = ""
    started_ms: int = 0
    brokers: int = 0
    session_timeout_ms: int = 0
    request_timeout_ms: int = 30_000  # the greatest `request.timeout.ms` of all brokers
    operations_min: int = 0  # T1: how many operations must succeed before and after the faults
    chroot: str = ""  # "" or "/…"; znodes outside are ignored
    log_folders: list[str] | None = None  # log folder of each member; None: not accessible
    super_users: list[str] | None = None  # of the authorizer; None: no authorizer
    allow_if_no_acl: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """A sealed file. The judge rejects a file of another size or digest."""

    path: str  # below the run's folder, with "/"
    kind: str  # one of FILE_KINDS
    bytes: int
    sha256: str
    lines: int = 0  # including a last line without newline; 0 for `log`
    cut: bool = False  # the last line has no newline

    def change(self, size: int, sha256: Callable[[], str]) -> str:
        """Return how a file differs from the sealed one; "" if it does not.

        `sha256` reads the file. It is called only if the size is right, so a file is never read
        beyond its sealed size.
        """
        if size != self.bytes:
            verb = "grown" if size > self.bytes else "shrunk"
            return (
                f"has {verb} from {self.bytes} to {size} bytes since it was sealed: find out what "
                "wrote to it; if you seal the run again, the new content is judged."
            )
        if sha256() != self.sha256:
            return "has changed since it was sealed: its digest differs."
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperEvidence:
    """The result of reading the transaction logs. `gaps` describes the gaps, in sentences."""

    logs: bool  # False: not accessible; properties that need commits are NODATA
    members: int = 0
    first_zxid: int = 0  # only later transactions are judged
    last_zxid: int = 0  # of the last commit
    final_zxid: int | None = None  # of final.jsonl; None: no such file
    denied: int = 0  # proposals in a minority of the logs, never committed
    gaps: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The content of a sealed run; other files do not belong to it."""

    format: int = MANIFEST_FORMAT
    run: RunDescription
    sealed_ms: int
    zookeeper: ZooKeeperEvidence
    files: list[ManifestFile]


def parse_document(data: bytes) -> object:
    """Parse the JSON of a manifest.json, run.json or dumps.json.

    Raises:
        ValueError: it is not JSON, not UTF-8, or nested too deeply.
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def manifest_to_json(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest as a JSON object."""
    return asdict(manifest)


def manifest_from_json(document: object) -> Manifest:
    """Parse the JSON object of a manifest.json.

    Raises:
        ManifestError: the object is not a manifest, or its format is unknown.
    """
    if not isinstance(document, dict):
        raise ManifestError("manifest.json is not a JSON object: seal the run again.")
    format_ = document.get("format")
    if format_ != MANIFEST_FORMAT:
        raise ManifestError(
            f"manifest.json has format {_shown(format_)}, this version reads {MANIFEST_FORMAT}: "
            "judge it with the version that sealed it, or seal the run again."
        )
    try:
        if type(document["sealed_ms"]) is not int or type(document["files"]) is not list:
            raise TypeError("sealed_ms is not an integer, or files is not a list")
        return Manifest(
            run=_read(RunDescription, document["run"]),
            sealed_ms=document["sealed_ms"],
            zookeeper=_read(ZooKeeperEvidence, document["zookeeper"]),
            files=[_read(ManifestFile, file) for file in document["files"]],
        )
    except (KeyError, TypeError) as error:
        raise ManifestError(f"manifest.json is invalid ({error}): seal the run again.") from None


def run_from_json(document: object) -> RunDescription:
    """Parse the JSON object of a run.json. Raises ManifestError."""
    try:
        run: RunDescription = _read(RunDescription, document)
    except TypeError as error:
        raise ManifestError(f"run.json is invalid: {error}.") from None
    return run


def _is(*types: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in types


def _is_list_of_texts(value: Any) -> bool:
    return type(value) is list and all(type(item) is str for item in value)


# Which values fit the annotation of a field.
_FITS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "str": _is(str),
    "int": _is(int),
    "bool": _is(bool),
    "str | None": _is(str, type(None)),
    "int | None": _is(int, type(None)),
    "list[str]": _is_list_of_texts,
    "list[str] | None": lambda value: value is None or _is_list_of_texts(value),
    "dict[str, str]": lambda value: type(value) is dict and _is_list_of_texts([*value.values()]),
}


def _read(kind: Any, document: Any) -> Any:
    """Build a dataclass from a JSON object; unknown fields of later versions are ignored."""
    if not isinstance(document, Mapping):
        raise TypeError(f"{_shown(document)} is not an object")
    types = {kind_field.name: str(kind_field.type) for kind_field in fields(kind)}
    values = {name: value for name, value in document.items() if name in types}
    for name, value in values.items():
        if not _FITS[types[name]](value):
            raise TypeError(f"{name} is {_shown(value)}, not of type {types[name]}")
    if kind is ManifestFile and not RUN_PATH.fullmatch(values.get("path", "")):
        raise TypeError(
            f"{_shown(values.get('path'))} is outside of the run's folder, or no run has such a "
            "file"
        )
    return kind(**values)


_SHOWN_MAX: Final = 100


def _shown(value: object) -> str:
    """Return the beginning of a value's JSON, which has no control characters."""
    try:
        text = json.dumps(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


# Why a line is not judged. `wrong_run` rejects the whole run (exit code 3). For any other reason,
# the line is set aside, and the witness to which the file belongs has a gap.
QUARANTINE_REASONS: Final[Mapping[str, str]] = {
    "utf8": "the line is not UTF-8",
    "not_json": "the line is not JSON; NaN, Infinity and comments are not JSON either",
    "not_an_object": "the line is JSON but not an object",
    "duplicate_key": "an object has a duplicate key",
    "overflow": "an integer does not fit into 64 bits",
    "wrong_run": "the line has the run_id of another run",
    "schema_newer": "schema_version is newer than this version supports",
    "unknown_kind": "the kind is unknown",
    "missing_field": "a required field is missing",
    "wrong_type": "a field has the wrong type, or is null where null is not allowed",
}
# Lines of these kinds are counted, too, but they are not gaps.
#   blank        an empty line
#   duplicate    node, boot and seq of an event that was already read, with the same content
#   cut          a last line without newline, of a boot without `stopped`
#   unknown_field    accepted; the pipeline keeps the field separately
