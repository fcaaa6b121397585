"""`python -m containers.submitter`: seal the run of a compose project, and let Spark judge it.

Read first: brokers have stopped, ZooKeeper still runs. What it holds is written down, its members'
logs (/datalog/1, /datalog/2 …) are gathered, and the pipeline runs on the project's own Spark. A
run that is sealed already is judged as it is.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

from bridgehead.application import module_command, module_environment
from chaos.evidence.dump import dump
from chaos.evidence.finding import seal_now
from chaos.evidence.reading import EvidenceError
from containers.setup import EVIDENCE
from containers.spark import MASTER
from event_log.evidence import FINAL_DUMP, MANIFEST, RUN

LOGS = Path("/datalog")
TABLES = Path("/tables")
_REGISTERED = re.compile(r'"path": ?"/brokers/ids/(\d+)"')


def seal(run: Path, connect: str, logs: Path = LOGS) -> None:
    """Write down what ZooKeeper holds, gather its logs, name everything in a manifest.

    Raises:
        EvidenceError: brokers still run, or something of it cannot be read.
    """
    asyncio.run(dump(connect, run, "final"))
    registered = sorted(_REGISTERED.findall((run / FINAL_DUMP).read_text(encoding="utf-8")))
    if registered:
        raise EvidenceError(
            f"Brokers {', '.join(registered)} are still registered: stop them first "
            "(docker compose stop kafka-1 kafka-2 kafka-3); one that was killed goes with its "
            "ZooKeeper session."
        )
    members = sorted(path for path in logs.iterdir() if path.is_dir())
    manifest = seal_now(run, [str(member) for member in members])
    for hole in manifest.zookeeper.holes:
        sys.stdout.write(f"{hole}\n")


def main() -> int:
    """Seal, run the pipeline, and return its exit status; 2 when there is nothing to judge."""
    run = EVIDENCE / f"run={os.environ.get('KAFKA_BRIDGEHEAD_RUN_ID') or 'compose'}"
    try:
        if not (run / RUN).is_file():
            raise EvidenceError(f"{run} holds no run: start the cluster first.")
        if not (run / MANIFEST).is_file():
            seal(run, os.environ["KAFKA_ZOOKEEPER_CONNECT"])
    except (EvidenceError, OSError) as wrong:
        sys.stderr.write(f"There is nothing to judge: {wrong}\n")
        return 2
    # By its address: `docker compose run` gives the container no name in the network.
    host = socket.gethostbyname(socket.gethostname())
    command = module_command(
        *("pipeline", "run", f"--evidence={run}", f"--out={TABLES}"),
        *(f"--master={os.environ.get('SPARK_MASTER') or MASTER}", f"--driver-host={host}"),
        f"--memory={os.environ['SPARK_MEMORY']}",
    )
    return subprocess.run(command, env=module_environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
