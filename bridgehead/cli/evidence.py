"""`bridgehead evidence seal DIR`: a run whose supervisor was killed is sealed afterwards."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="What runs have left behind for the judges.")


@app.command()
def kafka(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the run's folder goes.")],
    *,
    logs: Annotated[
        list[Path],
        typer.Option(
            metavar="[ID=]FOLDER",
            help="A real broker's log folder, with kafka-request.log; once for each broker.",
        ),
    ],
    zookeeper_logs: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Where a member of its ZooKeeper keeps its log."),
    ] = None,
) -> None:
    """Gather a real Kafka's logs into a sealed run, for `bridgehead pipeline run`."""
    from bridgehead.application import module_command, module_environment

    options = [part for each in logs for part in ("--logs", str(each))]
    options += [part for each in zookeeper_logs or () for part in ("--zookeeper-logs", str(each))]
    result = subprocess.run(
        module_command("chaos.evidence", "kafka", str(folder), *options),
        env=module_environment(),
        check=False,
    )
    raise typer.Exit(result.returncode)


@app.command()
def seal(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A cluster's folder, or that of one run.")
    ],
    *,
    zookeeper_logs: Annotated[
        list[Path] | None,
        typer.Option(
            "--zookeeper-logs",
            metavar="FOLDER",
            help="Where a member of an external ZooKeeper keeps its log; once for each member.",
        ),
    ] = None,
) -> None:
    """Name every file of a run in a manifest: `down` does it, this is for runs that were killed."""
    from bridgehead.application import module_command, module_environment
    from bridgehead.cluster.data_directory import DataDirectory
    from bridgehead.cluster.errors import ClusterError

    if not folder.is_dir():
        raise ClusterError(f"{folder} is no folder: name the one that --data-dir named.")
    for root in (folder, folder.parent.parent):
        if DataDirectory(root).is_claimed():
            raise ClusterError(f"A cluster is running in {root}: `bridgehead down` seals its run.")
    options = [
        part for each in zookeeper_logs or () for part in ("--zookeeper-logs", str(each.resolve()))
    ]
    result = subprocess.run(
        module_command("chaos.evidence", "seal", str(folder), *options),
        env=module_environment(),
        check=False,
    )
    raise typer.Exit(result.returncode)
