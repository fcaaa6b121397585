"""`python -m judge.evidence seal DIR | kafka DIR | check-key FILE | follow RUN`.

Seals runs, imports the logs of a real Kafka as a run, checks that a file can be the seal key, or
prints the commit lines of a run that is not sealed, until standard input is closed.
Exit code: 0, or 4 if the command fails.
"""

from __future__ import annotations

import argparse
import os
import select
import sys
from collections.abc import Sequence
from pathlib import Path

from event_log.evidence import MANIFEST
from judge.evidence.following import follow
from judge.evidence.kafka_logs import gather_kafka
from judge.evidence.run_files import EvidenceError, is_file
from judge.evidence.run_lookup import find_runs, seal_now
from judge.exit_codes import CANNOT_RUN
from judge.seals import SealError, read_key
from judge.terminal import complain, complain_of_crash, say


def main(arguments: Sequence[str] | None = None) -> int:
    """Seal runs, import the logs of a real Kafka, or check a key; return the exit code."""
    parser = argparse.ArgumentParser(prog="bridgehead evidence", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    sealing = commands.add_parser("seal")
    sealing.add_argument("folder", type=Path)
    sealing.add_argument("--zookeeper-logs", action="append", default=[])
    sealing.add_argument("--seal-key", type=Path)
    kafka = commands.add_parser("kafka")
    kafka.add_argument("folder", type=Path)
    kafka.add_argument("--logs", action="append", required=True)
    kafka.add_argument("--zookeeper-logs", action="append", default=[])
    kafka.add_argument("--seal-key", type=Path)
    commands.add_parser("check-key").add_argument("file", type=Path)
    following = commands.add_parser("follow")
    following.add_argument("folder", type=Path)
    following.add_argument("--once", action="store_true")
    following.add_argument("--zookeeper-logs", action="append", default=[])
    options = parser.parse_args(arguments)
    os.umask(0o077)  # the transaction log contains SCRAM keys
    try:
        if options.command == "kafka":
            key = None if options.seal_key is None else read_key(options.seal_key)
            say(gather_kafka(options.folder, options.logs, options.zookeeper_logs, key))
        elif options.command == "check-key":
            read_key(options.file)
        elif options.command == "follow":
            _follow(options.folder, options.zookeeper_logs, once=options.once)
        else:
            _seal(options.folder, options.zookeeper_logs, options.seal_key)
    except BrokenPipeError:  # The output is closed; the caller handles it.
        raise
    except (EvidenceError, SealError, OSError) as error:
        complain(error)
        return CANNOT_RUN
    except Exception as crash:
        complain_of_crash(crash)
        return CANNOT_RUN
    return 0


def _follow(folder: Path, log_folders: list[str], *, once: bool) -> None:
    def is_wanted() -> bool:
        sys.stdout.buffer.flush()
        return not once and not select.select([sys.stdin], [], [], 0)[0]

    for line in follow(folder, is_wanted, log_folders):
        sys.stdout.buffer.write(line)


def _seal(folder: Path, log_folders: list[str], key_file: Path | None) -> None:
    """Seal every unsealed run.

    With `--zookeeper-logs`, seal only the last run. If `folder` is itself a run, seal that run. In
    these two cases a sealed run is sealed again.
    """
    key = None if key_file is None else read_key(key_file)
    runs = find_runs(folder)
    chosen = [run for run in runs if not is_file(run, MANIFEST)]
    if log_folders or folder in runs:
        chosen = runs[-1:]
    for run in chosen:
        manifest = seal_now(run, log_folders or None, key)
        lines = sum(file.lines for file in manifest.files)
        say(f"{run}: {len(manifest.files)} files, {lines} lines.")
        for gap in manifest.zookeeper.gaps:
            say(f"  {gap}")
        if not manifest.zookeeper.logs:
            say("  ZooKeeper's transaction logs are missing: name them with --zookeeper-logs.")
    if not chosen:
        say("All runs are sealed.")


if __name__ == "__main__":
    sys.exit(main())
