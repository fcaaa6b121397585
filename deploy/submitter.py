"""`python -m deploy.submitter`: seals the run of a compose project and judges it with Spark.

The program runs after the brokers have stopped, while ZooKeeper still runs. It dumps ZooKeeper's
contents, collects the logs of the ZooKeeper servers (/datalog/1, /datalog/2 …) and runs the
pipeline on the project's Spark. If the run is already sealed, it is only judged. The environment
variable BRIDGEHEAD_SEAL_KEY names a file with the key that signs the manifest. If the run is
already sealed, this key must have signed its manifest.
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
from bridgehead.exit_codes import ExitCode
from deploy.prepare_run import EVIDENCE
from deploy.spark import MASTER
from event_log.evidence import FINAL_DUMP, MANIFEST, RUN
from judge.evidence.run_files import EvidenceError
from judge.evidence.run_lookup import seal_now
from judge.exit_codes import CANNOT_RUN
from judge.seals import SealError, read_key
from node.znode_dump import DumpError, dump

LOGS = Path("/datalog")
TABLES = Path("/tables")
_REGISTERED = re.compile(r'"path": ?"/brokers/ids/(\d+)"')


def seal(run: Path, connect: str, logs: Path = LOGS, key: bytes | None = None) -> None:
    """Dump ZooKeeper, collect its logs and write the manifest; with a key, sign the manifest.

    Raises:
        EvidenceError: brokers are still registered, or evidence cannot be read.
        DumpError: ZooKeeper cannot be dumped.
    """
    asyncio.run(dump(connect, run, "final"))
    registered = sorted(_REGISTERED.findall((run / FINAL_DUMP).read_text(encoding="utf-8")))
    if registered:
        raise EvidenceError(
            f"Brokers {', '.join(registered)} are still registered: stop them first "
            "(docker compose stop kafka-1 kafka-2 kafka-3), and wait until the ZooKeeper sessions "
            "of killed brokers have expired."
        )
    members = sorted(path for path in logs.iterdir() if path.is_dir())
    manifest = seal_now(run, [str(member) for member in members], key)
    for gap in manifest.zookeeper.gaps:
        sys.stdout.write(f"{gap}\n")


def main() -> int:
    """Seal the run, run the pipeline and return its exit status.

    The status is 3 if there is no run or it cannot be sealed, and 4 if the seal key cannot be used.
    """
    run = EVIDENCE / f"run={os.environ.get('KAFKA_BRIDGEHEAD_RUN_ID') or 'compose'}"
    os.umask(0o077)
    key_file = os.environ.get("BRIDGEHEAD_SEAL_KEY")
    try:
        key = read_key(Path(key_file)) if key_file else None
        if not (run / RUN).is_file():
            raise EvidenceError(f"{run} contains no run: start the cluster first.")
        if not (run / MANIFEST).is_file():
            seal(run, os.environ["KAFKA_ZOOKEEPER_CONNECT"], LOGS, key)
    except SealError as error:
        sys.stderr.write(f"{error}\n")
        return CANNOT_RUN
    except (DumpError, EvidenceError, OSError) as error:
        sys.stderr.write(f"The run cannot be judged: {error}\n")
        return ExitCode.UNDECIDED
    # Spark gets the container's IP address, because `docker compose run` gives the container no
    # name in the network.
    host = socket.gethostbyname(socket.gethostname())
    command = module_command(
        *("pipeline", "run", f"--evidence={run}", f"--out={TABLES}"),
        *(f"--master={os.environ.get('SPARK_MASTER') or MASTER}", f"--driver-host={host}"),
        f"--memory={os.environ['SPARK_MEMORY']}",
        *([f"--seal-key={key_file}"] if key_file else []),
    )
    return subprocess.run(command, env=module_environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
