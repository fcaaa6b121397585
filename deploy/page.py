"""`python -m deploy.page`: serves the page of a compose project's cluster (docs/ui.md).

It reads the evidence and ZooKeeper's logs (/datalog/1, /datalog/2 ...), and cannot change anything.
It listens on all addresses of its container: compose publishes the port on the host's loopback.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bridgehead.cluster.errors import ClusterError
from bridgehead.exit_codes import ExitCode
from bridgehead.ui.server import Served, open_run, serve
from deploy.prepare_run import EVIDENCE
from deploy.submitter import LOGS

PORT = 8480


def followed(run: Path, logs: Path) -> Served:
    """Return what the page shows: a run that grows, with the logs of ZooKeeper's members.

    Raises:
        ClusterError: there is no such run.
        OSError: the folder of the logs cannot be read.
    """
    members = sorted(str(path) for path in logs.iterdir() if path.is_dir())
    return Served(open_run(run, members), str(run), follows=True)


def main() -> int:
    """Serve the page until the container stops; return the exit status."""
    run = EVIDENCE / f"run={os.environ.get('BRIDGEHEAD_RUN_ID') or 'compose'}"
    published = os.environ.get("BRIDGEHEAD_UI_PORT") or str(PORT)

    def announce(address: str) -> None:
        sys.stdout.write(f"Open {address.replace(f':{PORT}/', f':{published}/')}\n")
        sys.stdout.flush()

    try:
        serve(followed(run, LOGS), PORT, announce, host="0.0.0.0")  # noqa: S104 - of the container
    except (ClusterError, OSError) as error:
        sys.stderr.write(f"The page cannot be served: {error}\n")
        return ExitCode.CANNOT_RUN
    return 0


if __name__ == "__main__":
    sys.exit(main())
