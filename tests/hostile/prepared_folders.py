"""A data directory and a configuration that somebody else prepared before `up` runs there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tests.hostile.family import Report, limited

CANNOT_RUN: Final = 4
LINKED: Final = (
    *("supervisor.pid", "supervisor.log", "cluster.json", "control.sock", "nodes", "evidence"),
    *("tls", "channel", "zookeeper", "nodes/1", "nodes/1/node.log", "nodes/1/node.pid"),
    *("channel/zookeeper.json", "zookeeper/zoo.cfg", "nodes/1/logs/replication-offset-checkpoint"),
)
FOLDERS: Final = ("nodes", "evidence", "tls", "channel", "zookeeper", "nodes/1")
MERGES: Final = "\n".join(
    ["m0: &m0 {" + ", ".join(f"k{n}: v" for n in range(10)) + "}"]
    + [f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 10)}]}}" for n in range(1, 9)]
    + ["properties: *m8"]
)
CONFIGURATIONS: Final = {
    "deep lists": "[" * 100_000,
    "deep maps": "{a: " * 100_000,
    "a long number": "brokers: " + "9" * 5_000,
    "an impossible date": "brokers: 2026-99-99",
    "merges of merges": MERGES,
    "a Python object": "!!python/object/apply:os.system ['touch owned']",
    "a semicolon in a super user's name": "users: {'a;User:mallory': {super: true}}",
    "a super user's name with a space": "users: {' mallory': {super: true}}",
    "not UTF-8": "brokers: \udcff",
}


def prepare_folders(folder: Path, report: Report) -> None:
    """Prepare each folder, run `up` in it, and look at the files outside."""
    for number, name in enumerate(LINKED):
        for mode in (0o777, 0o700):
            place = folder / f"{number}-{mode:o}"
            victim, data = place / "victim", place / "data"
            _plant(data / name, victim, is_folder=name in FOLDERS)
            data.chmod(mode)
            _rejected(report, data, f"a link at {name} in a folder of mode {mode:o}")
            kept = victim / "kept" if victim.is_dir() else victim
            report.expect(kept.read_text() == "thesis", f"{name}: the linked file was changed")
            inside = sorted(path.name for path in victim.rglob("*"))
            report.expect(inside in ([], ["kept"]), f"{name}: files were created: {inside}")
            report.expect(victim.stat().st_mode & 0o777 == 0o755, f"{name}: the mode was changed")
    shared = folder / "shared"
    shared.mkdir()
    (shared / "notes").touch()
    shared.chmod(0o777)
    _rejected(report, shared, "a folder with other files that everyone can write")
    piped = folder / "piped"
    piped.mkdir()
    os.mkfifo(piped / "supervisor.pid")
    _rejected(report, piped, "a pipe")
    for number, (name, text) in enumerate(CONFIGURATIONS.items()):
        file = folder / f"{number}.yaml"
        file.write_text(text, encoding="utf-8", errors="surrogateescape")
        _rejected(report, folder / f"c{number}", name, "--config", str(file))
    report.expect(not (folder / "owned").exists(), "YAML executed a command")


def _plant(path: Path, victim: Path, *, is_folder: bool) -> None:
    path.parent.mkdir(parents=True)
    if is_folder:
        victim.mkdir()
        (victim / "kept").write_text("thesis")
    else:
        victim.write_text("thesis")
    victim.chmod(0o755)
    path.symlink_to(victim)


def _rejected(report: Report, data: Path, what: str, *options: str) -> None:
    up = ("up", "--detach", "--brokers=1", "--ports=auto", *options, "--data-dir", str(data))
    status, output = limited(*up, timeout_s=90, memory_gib=64, cwd=data.parent)
    report.expect(status == CANNOT_RUN, f"up: {what}: exit code {status}: {output[-300:]!r}")
    report.expect("Traceback" not in output, f"up: {what}: a traceback: {output[-500:]!r}")
    report.expect("Unexpected" not in output, f"up: {what}: {output[-300:]!r}")
    if status == 0:
        limited("down", "--data-dir", str(data), memory_gib=64)
