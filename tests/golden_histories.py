"""Golden histories: small runs in YAML, with the verdicts of the plain judge and the pipeline.

A file of tests/golden has the histories of one property or theme. A history describes one run and
omits what does not matter. `expand` writes the sealed folder that a judge reads.
tests/golden/README.md describes the format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from event_log.commits import (
    CommitLine,
    CommitOperation,
    CommitOutcome,
    DumpLine,
    content_digest,
    role_of,
)
from event_log.events import EVENT_KINDS, SCHEMA_VERSION
from event_log.evidence import (
    COMMITS,
    FINAL_DUMP,
    FIRST_DUMP,
    MANIFEST,
    RunDescription,
    ZooKeeperEvidence,
)
from judge.evidence.sealing import write_manifest
from judge.property import Runs, Violation, violation_order
from judge.verdicts import NOTHING_TO_JUDGE, VerdictRow, worst

FOLDER: Final = Path(__file__).parent / "golden"
RUN_ID: Final = "golden"
WALL_MS: Final = 1_700_000_000_000  # when every run began
_DEFAULTS: Final[Mapping[str, Any]] = {
    "str": "",
    "int": 0,
    "bool": False,
    "float": 0.0,
    "str | None": None,
    "int | None": None,
    "Identity": [1, "a", 1],
    "list[str]": [],
    "list[tuple[str, int]]": [],
    "dict[str, float]": {},
}
# Histories do not pin these reasons, because the reasons follow from the counts and from `run`.
_USUAL_REASONS: Final = {"", NOTHING_TO_JUDGE, *Runs}
_OPERATION: Final = re.compile(
    r"(?P<kind>create|ephemeral|set|check|delete|set_acl|error)"
    r"(?: (?P<path>/\S+))?(?: v(?P<version>-?\d+))?(?: = (?P<data>.*))?"
)


def names() -> list[str]:
    """Return the names of all golden histories."""
    return sorted(_documents())


def verdicts(rows: Sequence[VerdictRow], violations: Collection[Violation]) -> dict[str, Any]:
    """Return a judge's results in the form in which a history pins them (`expect`, `sentences`)."""
    expect: dict[str, Any] = {"run": str(worst(rows))}
    violations_of: dict[str, list[Violation]] = {row.property: [] for row in rows}
    for violation in sorted(violations, key=violation_order):
        violations_of[violation.property].append(violation)
    reasons = set()
    for row in rows:
        keys = [violation.key for violation in violations_of[row.property]]
        expect[row.property] = [str(row.verdict), row.judged, *([sorted(keys)] if keys else [])]
        if not keys or row.why != violations_of[row.property][0].sentence:
            reasons.add(row.why)
    sentences = {f"{violation.property}: {violation.sentence}" for violation in violations}
    return {"expect": expect, "sentences": sorted(reasons - _USUAL_REASONS) + sorted(sentences)}


def pinned(golden: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `verdicts` must return for a history."""
    return {"expect": golden["expect"], "sentences": golden.get("sentences", [])}


@cache
def _documents() -> Mapping[str, dict[str, Any]]:
    """Read every file; return the histories by name, as they are written."""
    documents: dict[str, dict[str, Any]] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        # `CSafeLoader` takes an eighth of the time of `safe_load`, and is as safe.
        documents |= yaml.load(text, yaml.CSafeLoader)
    return documents


def load(name: str) -> dict[str, Any]:
    """Return one golden history. Its changes are applied to the history that `like` names."""
    document = deepcopy(_documents()[name])
    if "like" not in document:
        return document
    base = load(document["like"])
    for change in document.get("changes", []):
        _change(base, change)
    expect = {**base["expect"], **document["expect"]}
    changed = {key: value for key, value in document.items() if key not in ("like", "changes")}
    final = {**base.get("final", {}), **changed.pop("final", {})}
    final = {path: znode for path, znode in final.items() if znode is not None}
    return {**base, **changed, "expect": expect, "final": final}


def _change(golden: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Apply one change to a history.

    `in` names a list: `zookeeper`, or the events of a boot (one life of a process). `at` is a
    kind or a zxid. The change applies to the first item of the list that has this kind or zxid.
    `with` sets fields of that item, `put` replaces the item by a list, and `before` and `after`
    insert items around it. `add` appends to the list.
    """
    items = items_of(golden, change["in"])
    if "add" in change:
        items += change["add"]
        return
    at = next(index for index, item in enumerate(items) if is_at(item, change["at"]))
    item = items[at]
    if "with" in change:
        fields_of = item if "zxid" in item else item[change["at"]]
        fields_of |= change["with"]
    items[at : at + 1] = [
        *change.get("before", []),
        *change.get("put", [item]),
        *change.get("after", []),
    ]


def items_of(golden: Mapping[str, Any], name: str) -> list[Any]:
    """Return the list that `in` names: a boot's events, or ZooKeeper's transactions."""
    if name == "zookeeper":
        commits: list[Any] = golden["zookeeper"]
        return commits
    for key in ("nodes", "clients", "harness"):
        if name in golden.get(key, {}):
            items: list[Any] = golden[key][name]
            return items
    raise KeyError(name)


def is_at(item: Any, at: Any) -> bool:
    """Return whether an event has this kind, or a transaction this zxid."""
    if not isinstance(item, dict):
        return bool(item == at)
    return item.get("zxid") == at or at in item


def expand(golden: Mapping[str, Any], folder: Path) -> Path:
    """Write the sealed run of a golden history into `folder`; return the folder."""
    run = RunDescription(run_id=RUN_ID, **golden.get("run", {}))
    for source, key in (("node", "nodes"), ("client", "clients"), ("harness", "harness")):
        for boot, items in golden.get(key, {}).items():
            _write_boot(folder, source, boot, items)
    zookeeper = ZooKeeperEvidence(logs=False)
    if golden.get("zookeeper") is not None:
        zookeeper = _write_zookeeper(folder, golden)
    write_manifest(folder, run, zookeeper, sealed_ms=0)
    _change_sealed(folder, golden.get("after_sealing", {}))
    return folder


def _write_boot(folder: Path, source: str, name: str, items: Sequence[Any]) -> None:
    """Write one boot's segments; `- segment` starts the next one."""
    process, _, boot = name.partition("/")
    node = process if source == "node" else f"{source}-{process}"
    target = folder / f"{source}={process}"
    target.mkdir(parents=True, exist_ok=True)
    segment, seq, lines = 0, 0, list[bytes]()
    for item in [*items, "segment"]:
        if item == "segment":
            path = target / f"events-{boot}-{segment:04}.jsonl"
            path.write_bytes(b"".join(lines))
            segment, lines = segment + 1, []
        elif "line" in item:
            lines.append(item["line"].encode("latin-1") + b"\n")
        elif "cut" in item:
            lines.append(item["cut"].encode())
        else:
            event = _event(item, node, boot, seq)
            seq = event["seq"] + 1
            lines.append(json.dumps(event).encode() + b"\n")


def _event(item: Mapping[str, Any], node: str, boot: str, seq: int) -> dict[str, Any]:
    """Return an event: the common fields, then its kind's defaults, then the history's values."""
    ((kind, values),) = item.items()
    values = dict(values or {})
    at_ms = values.pop("at_ms", seq)
    event: dict[str, Any] = {
        "kind": kind,
        "seq": seq,
        "mono_ns": at_ms * 1_000_000,
        "wall_ms": WALL_MS + at_ms,
        "run_id": RUN_ID,
        "node": node,
        "boot": boot,
        "host_boot_id": "host",
        "schema_version": SCHEMA_VERSION,
    }
    if kind in EVENT_KINDS:
        event |= {field.name: _DEFAULTS[str(field.type)] for field in fields(EVENT_KINDS[kind])}
    without = values.pop("without", [])
    event |= values
    return {name: value for name, value in event.items() if name not in without}


def _write_zookeeper(folder: Path, golden: Mapping[str, Any]) -> ZooKeeperEvidence:
    (folder / "zookeeper").mkdir(parents=True)
    lines = [_commit(commit) for commit in golden["zookeeper"]]
    _write_lines(folder / COMMITS, lines)
    first = golden.get("first", {})
    _write_lines(folder / FIRST_DUMP, [_znode(*item) for item in sorted(first.items())])
    if "final" in golden:
        final = [_znode(*item) for item in sorted(golden["final"].items())]
        _write_lines(folder / FINAL_DUMP, final)
    last = lines[-1]["zxid"] if lines else 0
    return ZooKeeperEvidence(
        logs=True,
        members=1,
        first_zxid=golden.get("first_zxid", 0),
        last_zxid=last,
        final_zxid=last if "final" in golden else None,
        gaps=golden.get("zookeeper_gaps", []),
    )


def _write_lines(path: Path, lines: Sequence[Any]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _commit(values: Mapping[str, Any]) -> dict[str, Any]:
    line = CommitLine(
        zxid=values["zxid"],
        session=values.get("session", "0xa"),
        time_ms=WALL_MS + values["at_ms"] if "at_ms" in values else 0,
        kind=values.get("kind", "multi"),
        failed=values.get("failed", False),
    )
    line.operations.extend(map(_operation, values.get("do", [])))
    for broker_id, incarnation, sequence, request_id, element, error in values.get("outcomes", []):
        line.outcomes.append(
            CommitOutcome(
                broker_id=broker_id,
                incarnation=incarnation,
                sequence=sequence,
                request_id=request_id,
                element=element,
                error=error,
            )
        )
    return asdict(line)


def _operation(text: str) -> CommitOperation:
    """Parse an operation, such as `create /path = data`, `set /path v2 = data` or `error`."""
    match = _OPERATION.fullmatch(text)
    assert match is not None, text
    kind = "create" if match["kind"] == "ephemeral" else match["kind"]
    path, with_data = match["path"] or "", kind in ("create", "set")
    data = (match["data"] or "") if with_data else None
    return CommitOperation(
        kind=kind,
        path=path,
        role=role_of(kind, path),
        version=int(match["version"]) if match["version"] else (0 if kind == "create" else -1),
        ephemeral=match["kind"] == "ephemeral",
        data=data,
        digest=content_digest(data.encode()) if data is not None else None,
    )


def _znode(path: str, values: Mapping[str, Any]) -> dict[str, Any]:
    data = str(values.get("data", ""))
    return asdict(
        DumpLine(
            path=path,
            czxid=values.get("czxid", 0),
            mzxid=values.get("mzxid", values.get("czxid", 0)),
            version=values.get("version", 0),
            ephemeral_owner=values.get("owner"),
            digest=content_digest(data.encode()),
            data=data,
        )
    )


def _change_sealed(folder: Path, changes: Mapping[str, Any]) -> None:
    """Change the evidence after it was sealed."""
    for name, text in changes.get("append", {}).items():
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(text)
    for name, count in changes.get("cut_off_bytes", {}).items():
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[:-count])
    for name, (before, after) in changes.get("replace", {}).items():
        text = (folder / name).read_text(encoding="utf-8")
        assert before in text
        (folder / name).write_text(text.replace(before, after), encoding="utf-8")
    for name in changes.get("remove", []):
        (folder / name).unlink()
    for name, text in changes.get("add", {}).items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, value in changes.get("manifest", {}).items():
        document = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        document[name] = value
        (folder / MANIFEST).write_text(json.dumps(document), encoding="utf-8")
