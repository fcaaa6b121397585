"""`bridgehead pipeline run`: the data pipeline on Spark, a process of the application tree."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Tables, verdicts and a report, made by Spark.")


@app.command()
def run(
    *,
    evidence: Annotated[
        Path, typer.Option(metavar="DIR", help="A cluster's folder, or one sealed run.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where tables and report go.")],
    master: Annotated[
        str, typer.Option(help="Spark's master: local[*] or spark://HOST:PORT.")
    ] = "local[*]",
    driver_host: Annotated[
        str,
        typer.Option(
            metavar="HOST",
            help="This host's name as a cluster's workers see it; the driver listens there.",
        ),
    ] = "127.0.0.1",
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A setting of Spark's; may be repeated."),
    ] = None,
    memory: Annotated[str, typer.Option(help="Memory of the driver and of executors.")] = "4g",
    debug: Annotated[bool, typer.Option("--debug", help="Show stack traces.")] = False,
) -> None:
    """Judge sealed runs: exit 0 when all held, 1 when not, 2 when it cannot be told."""
    from bridgehead.application import application_root, module_command, module_environment
    from bridgehead.cluster.errors import ClusterError

    if not (application_root() / "pipeline" / "__main__.py").is_file():
        raise ClusterError("This installation holds no pipeline: install bridgehead again.")
    result = subprocess.run(
        module_command(
            *("pipeline", "run", "--evidence", str(evidence), "--out", str(out)),
            *("--master", master, "--driver-host", driver_host, "--memory", memory),
            *(f"--conf={each}" for each in conf or []),
            *(["--debug"] if debug else []),
        ),
        env=module_environment(),
        check=False,
    )
    raise typer.Exit(result.returncode)
