"""A real Kafka's logs as a run: its request and authorizer logs, its ZooKeeper's transactions."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from chaos.evidence.finding import seal_now
from chaos.evidence.reading import EvidenceError
from event_log.evidence import KAFKA_LOGS, RUN, RunDescription

_BROKER: Final = re.compile(r"(?:(?P<id>[A-Za-z0-9_-]+)=)?(?P<folder>.+)")
RUN_ID: Final = "kafka"


def gather_kafka(target: Path, logs: Sequence[str], zookeeper_logs: Sequence[str]) -> str:
    """Copy the logs into a sealed run below `target`; return a sentence about it.

    `logs` are folders, each of one broker, `[ID=]FOLDER`; without an id they are counted from 1.
    What such logs cannot say is NODATA; ids of requests, for one, are not in them.

    Raises:
        EvidenceError: a folder holds no such log, or the run is there already.
    """
    run = target / f"run={RUN_ID}"
    if run.exists():
        raise EvidenceError(f"{run} is there already: name another folder.")
    copied = 0
    for number, text in enumerate(logs, start=1):
        match = _BROKER.fullmatch(text)
        if match is None:
            raise EvidenceError(f"{text!r} is no [ID=]FOLDER.")
        source = Path(match["folder"])
        found = [p for name in KAFKA_LOGS for p in sorted(source.glob(f"{name}*")) if p.is_file()]
        if not found:
            raise EvidenceError(f"{source} holds neither {' nor '.join(KAFKA_LOGS)}.")
        folder = run / f"kafka={match['id'] or number}"
        folder.mkdir(parents=True)
        for path in found:
            shutil.copyfile(path, folder / path.name)
            copied += 1
    folders = [str(Path(each).resolve()) for each in zookeeper_logs]
    described = RunDescription(run_id=RUN_ID, brokers=len(logs), log_folders=folders or None)
    (run / RUN).write_text(json.dumps(asdict(described)), encoding="utf-8")
    manifest = seal_now(run, folders or None)
    lines = sum(file.lines for file in manifest.files)
    return f"{run}: {copied} logs, {lines} lines; bridgehead pipeline run --evidence {target}"
