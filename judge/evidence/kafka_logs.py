"""Imports a real Kafka's request and authorizer logs and ZooKeeper's transactions as a run."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from event_log.evidence import KAFKA_LOGS, RUN, RunDescription
from judge.evidence.run_files import EvidenceError, copy_file
from judge.evidence.run_lookup import seal_now

_BROKER: Final = re.compile(r"(?:(?P<id>[A-Za-z0-9_-]+)=)?(?P<folder>.+)")
RUN_ID: Final = "kafka"
# Observed with Kafka 3.9.1, with ZooKeeper's logs.
HEALTHY_KAFKA: Final = (
    "A healthy Kafka violates W2 (every_write_is_fenced), and the run then fails: Kafka writes "
    "topics, configs, /admin/delete_topics and /feature without a check of the controller epoch. "
    "Other violations are news."
)


def gather_kafka(
    target: Path, logs: Sequence[str], zookeeper_logs: Sequence[str], key: bytes | None = None
) -> str:
    """Copy the logs into a sealed run below `target`; return a sentence about the run.

    `logs` are folders, one for each broker, as `[ID=]FOLDER`; ids default to 1, 2, ... A property
    is NODATA if it needs data that these logs lack, such as request ids.

    Raises:
        EvidenceError: a folder has neither of Kafka's logs, or the run already exists.
    """
    run = target / f"run={RUN_ID}"
    if run.exists():
        raise EvidenceError(f"{run} exists: name another folder.")
    copied = 0
    for number, text in enumerate(logs, start=1):
        match = _BROKER.fullmatch(text)
        if match is None:
            raise EvidenceError(f"{text!r} is not [ID=]FOLDER.")
        source = Path(match["folder"])
        paths = [p for name in KAFKA_LOGS for p in sorted(source.glob(f"{name}*")) if p.is_file()]
        if not paths:
            raise EvidenceError(f"{source} has neither {' nor '.join(KAFKA_LOGS)}.")
        folder = run / f"kafka={match['id'] or number}"
        folder.mkdir(parents=True)
        for path in paths:
            copy_file(source, path.name, folder / path.name, path.stat().st_size)
            copied += 1
    folders = [str(Path(log).resolve()) for log in zookeeper_logs]
    described = RunDescription(run_id=RUN_ID, brokers=len(logs), log_folders=folders or None)
    (run / RUN).write_text(json.dumps(asdict(described)), encoding="utf-8")
    manifest = seal_now(run, folders or None, key)
    lines = sum(file.lines for file in manifest.files)
    return (
        f"{run}: {copied} logs, {lines} lines.\n{HEALTHY_KAFKA}\n"
        f"Next: bridgehead pipeline run --evidence {target}"
    )
