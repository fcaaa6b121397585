"""`python -m chaos.evidence seal DIR | kafka DIR | dump CONNECT RUN NAME`. Exit 0 or 2."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from chaos.evidence.dump import dump, read_access
from chaos.evidence.finding import find_runs, seal_now
from chaos.evidence.kafka_logs import gather_kafka
from chaos.evidence.reading import EvidenceError
from event_log.evidence import MANIFEST


def main(arguments: Sequence[str] | None = None) -> int:
    """Seal or dump; return the exit code."""
    parser = argparse.ArgumentParser(prog="bridgehead evidence", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    sealing = commands.add_parser("seal")
    sealing.add_argument("folder", type=Path)
    sealing.add_argument("--zookeeper-logs", action="append", default=[])
    kafka = commands.add_parser("kafka")
    kafka.add_argument("folder", type=Path)
    kafka.add_argument("--logs", action="append", required=True)
    kafka.add_argument("--zookeeper-logs", action="append", default=[])
    dumping = commands.add_parser("dump")
    dumping.add_argument("connect")
    dumping.add_argument("folder", type=Path)
    dumping.add_argument("name", choices=("first", "final"))
    options = parser.parse_args(arguments)
    try:
        if options.command == "dump":
            # By standard input, because a command line is seen by everybody.
            access = read_access(json.loads(sys.stdin.readline() or "{}"))
            asyncio.run(dump(options.connect, options.folder, options.name, access))
        elif options.command == "kafka":
            print(gather_kafka(options.folder, options.logs, options.zookeeper_logs))
        else:
            _seal(options.folder, options.zookeeper_logs)
    except EvidenceError as wrong:
        print(wrong, file=sys.stderr)
        return 2
    return 0


def _seal(folder: Path, log_folders: list[str]) -> None:
    """Seal every run that is not sealed yet; with logs named, the last one anew."""
    runs = find_runs(folder)
    chosen = [run for run in runs if not (run / MANIFEST).is_file()]
    if log_folders or folder in runs:
        chosen = runs[-1:]
    for run in chosen:
        manifest = seal_now(run, log_folders or None)
        lines = sum(file.lines for file in manifest.files)
        print(f"{run}: {len(manifest.files)} files, {lines} lines.")
        for hole in manifest.zookeeper.holes:
            print(f"  {hole}")
        if not manifest.zookeeper.logs:
            print("  ZooKeeper's transaction logs are out of reach: name them, --zookeeper-logs.")
    if not chosen:
        print("Every run is sealed already.")


if __name__ == "__main__":
    sys.exit(main())
