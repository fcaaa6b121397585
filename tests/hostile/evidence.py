"""Evidence that a stranger made: judge, pipeline and seal neither follow nor hang nor crash."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.hostile.family import Report, limited

SECONDS_MAX: Final = 30.0
UNDECIDED, CANNOT_RUN = 3, 4
CONTROLS: Final = "\x1b]0;owned\x07\x9b31m\u202e"
DEEP: Final = "[" * 200_000
RUN: Final = {"run_id": "r", "started_ms": 1, "brokers": 1, "log_folders": None}
_COMMON: Final = {
    "run_id": "r",
    "node": "1",
    "boot": "a",
    "host_boot_id": "h",
    "schema_version": 1,
    "seq": 0,
    "mono_ns": 1,
    "wall_ms": 1,
}


def write_run(folder: Path, *events: Mapping[str, Any], run: Mapping[str, Any] = RUN) -> Path:
    """Write an unsealed run: its description, and events of one node."""
    path = folder / "evidence" / "run=r"
    (path / "node=1").mkdir(parents=True)
    lines = [
        {**_COMMON, **event, "seq": number}
        for number, event in enumerate([*events, {"kind": "stopped", "reason": "asked"}])
    ]
    (path / "node=1" / "events-a-0000.jsonl").write_text(
        "".join(f"{json.dumps(x)}\n" for x in lines)
    )
    (path / "run.json").write_text(json.dumps(run))
    return path


def seal(folder: Path, **changes: Any) -> None:
    """Write a manifest as anybody can, who knows the format."""
    files = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data, name = path.read_bytes(), path.relative_to(folder).as_posix()
            files.append(
                {
                    "path": name,
                    "kind": "run" if name == "run.json" else "node",
                    "bytes": len(data),
                    "sha256": hashlib.sha256(data).hexdigest(),
                    "lines": data.count(b"\n"),
                }
            )
    described = json.loads((folder / "run.json").read_text())
    zookeeper = {"logs": False}
    manifest = {"format": 1, "run": described, "sealed_ms": 1, "zookeeper": zookeeper}
    (folder / "manifest.json").write_text(json.dumps({**manifest, "files": files, **changes}))


class Plant(NamedTuple):
    """A change of a sealed run; `victim` is a folder outside. The run may be unsealed after it."""

    name: str
    change: Callable[[Path, Path], object]


def _replace(name: str, make: Callable[[Path], object]) -> Callable[[Path, Path], object]:
    def change(run: Path, _: Path) -> None:
        (run / name).unlink()
        make(run / name)

    return change


def _link_folder(run: Path, victim: Path) -> None:
    (run / "zookeeper").symlink_to(victim)
    (run / "manifest.json").unlink()
    (run / "run.json").write_text(json.dumps({**RUN, "log_folders": [str(victim)]}))


def _name_log_folder(run: Path, victim: Path) -> None:
    (run / "manifest.json").unlink()
    (run / "run.json").write_text(json.dumps({**RUN, "log_folders": [str(victim / "logs")]}))


def _candidates(run: Path, _: Path) -> None:
    """A log in which each 12 bytes look like a record that ends at the end of the file."""
    count = 100_000
    entries = (struct.pack(">qi", 1, 12 * (count - n) - 11) for n in range(1, count))
    log = run / "zookeeper" / "member=1" / "log.1"
    log.parent.mkdir(parents=True)
    log.write_bytes(struct.pack(">4siq", b"ZKLG", 2, 0) + b"\1" * 12 + b"".join(entries) + b"BB")
    (run / "run.json").write_text(json.dumps({**RUN, "log_folders": ["/nowhere"]}))
    (run / "manifest.json").unlink()


def _unsealed(run: Path, content: str) -> None:
    (run / "manifest.json").unlink()
    (run / "run.json").write_text(content)


def _link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _sparse(run: Path, _: Path) -> None:
    os.truncate(run / EVENTS, 1 << 42)


def _sparse_unsealed(run: Path, victim: Path) -> None:
    _sparse(run, victim)
    (run / "manifest.json").unlink()


def _deep_line(run: Path, _: Path) -> None:
    (run / EVENTS).write_text(DEEP)
    seal(run)


def _sealed_path(path: str) -> Callable[[Path, Path], object]:
    """Return a change after which the manifest names this path."""
    file = {"path": path, "kind": "node", "bytes": 1, "sha256": ""}
    return lambda run, _: seal(run, files=[file])


def _odd_run_id(run: Path, _: Path) -> None:
    seal(run, run={**RUN, "run_id": f"{CONTROLS}\nPASS"})


NUMBERS: Final = json.dumps({**RUN, "log_folders": [5]})
EVENTS: Final = "node=1/events-a-0000.jsonl"
MANIFEST: Final = "manifest.json"
PLANTS: Final = (
    Plant("a pipe", _replace(EVENTS, os.mkfifo)),
    Plant("a link to /dev/zero", _replace(EVENTS, _link_to_zero)),
    Plant("a link to a file", lambda run, out: (run / "node=1" / "x").symlink_to(out / "thesis")),
    Plant("a link in place of a folder", _link_folder),
    Plant("a log folder elsewhere", _name_log_folder),
    Plant("a manifest that is a pipe", _replace(MANIFEST, os.mkfifo)),
    Plant("a manifest that is /dev/zero", _replace(MANIFEST, _link_to_zero)),
    Plant("a sparse file", _sparse),
    Plant("a sparse file, unsealed", _sparse_unsealed),
    Plant("a deep manifest", lambda run, _: (run / MANIFEST).write_text(DEEP)),
    Plant("a deep description", lambda run, _: _unsealed(run, DEEP)),
    Plant("a description of numbers", lambda run, _: _unsealed(run, NUMBERS)),
    Plant("a log full of starts of records", _candidates),
    Plant("a deep line", _deep_line),
    Plant("control characters in a name", lambda run, _: (run / CONTROLS).touch()),
    Plant("a name that is not UTF-8", lambda run, _: (run / "\udcff").touch()),
    Plant("control characters in a run's id", _odd_run_id),
    Plant("control characters in the manifest", _sealed_path(CONTROLS)),
    Plant("a path out of the run", _sealed_path("../../thesis")),
)


def plant_evidence(folder: Path, report: Report) -> None:
    """Plant each change, then judge and seal the run, and look at the folder outside."""
    for number, (name, change) in enumerate(PLANTS):
        for command in (("judge",), ("evidence", "seal")):
            place = folder / f"{number}-{command[-1]}"
            victim = place / "victim"
            (victim / "member=1").mkdir(parents=True)
            (victim / "logs").mkdir()
            for kept in ("thesis", "member=1/thesis", "logs/log.1"):
                (victim / kept).write_text("years of work")
            run = write_run(place / "data")
            seal(run)
            change(run, victim)
            began = time.monotonic()
            status, output = limited(*command, str(place / "data"), timeout_s=SECONDS_MAX)
            what = f"{' '.join(command)}: {name}"
            right = (UNDECIDED,) if command == ("judge",) else (0, CANNOT_RUN)
            report.expect(status in right, f"{what}: exit code {status}: {output[-300:]!r}")
            report.expect("Traceback" not in output, f"{what}: a traceback: {output[-500:]!r}")
            raw = [char for char in output if not char.isprintable() and char != "\n"]
            report.expect(not raw, f"{what}: raw characters {raw[:3]!r}")
            kept_files = sorted(p.relative_to(victim).as_posix() for p in victim.rglob("*"))
            is_kept = kept_files == ["logs", "logs/log.1", "member=1", "member=1/thesis", "thesis"]
            report.expect(is_kept, f"{what}: files outside changed: {kept_files}")
            copies = [
                p for p in (place / "data").rglob("log.1") if "years" in p.read_text("latin-1")
            ]
            report.expect(not copies, f"{what}: a foreign file was copied: {copies}")
            report.expect(
                time.monotonic() - began < SECONDS_MAX, f"{what}: took longer than {SECONDS_MAX} s"
            )
