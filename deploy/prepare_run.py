"""`python -m deploy.prepare_run`: prepares a compose project before its first node starts.

This one-shot service generates secrets, describes the run and dumps ZooKeeper's contents. The judge
starts from this dump. If the run exists already, the service does not change it. With the argument
`--secrets-only` it only generates secrets and needs no ZooKeeper; bridgehead.testing uses this.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from bridgehead.cluster.broker_certificates import ensure_certificates
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.event_lines import host_boot_id, software_versions
from bridgehead.exit_codes import ExitCode
from deploy.secure_project import PROPERTIES, SECRETS, write_secrets
from event_log.evidence import RUN, RunDescription
from node.znode_dump import DumpError, dump

EVIDENCE = Path("/evidence")


def description(environment: Mapping[str, str]) -> RunDescription:
    """Return the description of a run that has not started yet."""
    _, slash, chroot = environment["KAFKA_ZOOKEEPER_CONNECT"].partition("/")
    return RunDescription(
        run_id=environment.get("KAFKA_BRIDGEHEAD_RUN_ID") or "compose",
        scenario=environment.get("BRIDGEHEAD_SCENARIO") or None,
        versions=software_versions(),
        host_boot_id=host_boot_id(),
        started_ms=time.time_ns() // 1_000_000,
        brokers=int(environment.get("BRIDGEHEAD_BROKERS") or 3),
        session_timeout_ms=int(environment.get("KAFKA_ZOOKEEPER_SESSION_TIMEOUT_MS") or 6000),
        request_timeout_ms=int(environment.get("KAFKA_REQUEST_TIMEOUT_MS") or 30_000),
        chroot=slash + chroot,
    )


def _write_secrets(environment: Mapping[str, str]) -> None:
    """Generate the secrets on the first start.

    Later starts with the same brokers and user keep them while they are valid for long enough.
    """
    brokers = range(1, int(environment.get("BRIDGEHEAD_BROKERS") or 3) + 1)
    user = environment.get("KAFKA_BRIDGEHEAD_INTER_BROKER_USER") or "broker"
    ensure_certificates(SECRETS / "channel", brokers, user)
    file = environment.get("BRIDGEHEAD_CLUSTER_FILE")
    if file and not (SECRETS / PROPERTIES).is_file():
        write_secrets(Path(file), SECRETS, [f"kafka-{broker}" for broker in brokers], user)


def main() -> int:
    """Prepare the run; return the exit status."""
    os.umask(0o077)
    try:
        _write_secrets(os.environ)
    except (ClusterError, OSError) as error:
        sys.stderr.write(f"The run cannot be prepared: {error}\n")
        return ExitCode.CANNOT_RUN
    if "--secrets-only" in sys.argv[1:]:
        return 0
    run = description(os.environ)
    folder = EVIDENCE / f"run={run.run_id}"
    if (folder / RUN).is_file():
        sys.stdout.write(f"{folder} exists.\n")
        return 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(dump(os.environ["KAFKA_ZOOKEEPER_CONNECT"], folder, "first"))
        (folder / RUN).write_text(json.dumps(asdict(run), indent=2) + "\n", encoding="utf-8")
    except (DumpError, OSError) as error:
        sys.stderr.write(f"The run cannot be prepared: {error}\n")
        return ExitCode.CANNOT_RUN
    sys.stdout.write(f"{folder} is prepared.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
