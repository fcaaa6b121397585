"""`bridgehead demo NAME`: small shows on a cluster of their own; a process of the tree."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Shows on a cluster of their own, a few seconds each.")

DataDir = Annotated[
    Path, typer.Option(help="Where the cluster lives; what an earlier demo left there goes.")
]


@app.command()
def policies() -> None:
    """A topic policy of one's own: its verdicts, and what becomes of one that hangs."""
    _run("policies")


@app.command()
def dialects() -> None:
    """The KIPs as they were drafted, beside Kafka as it shipped, on one cluster."""
    _run("dialects")


@app.command()
def authorization(*, data_dir: DataDir = Path(".demo-authorization")) -> None:
    """Alice may, bob may not, mallory forges an Envelope, a broker has the wrong certificate."""
    _run("authorization", "--data-dir", str(data_dir))


def _run(name: str, *arguments: str) -> None:
    """Exit 0 when it all held, 1 when not."""
    from bridgehead.application import application_root, module_command, module_environment
    from bridgehead.cluster.errors import ClusterError

    if not (application_root() / "chaos" / "demo" / f"{name}.py").is_file():
        raise ClusterError("This installation holds no demos: install bridgehead again.")
    command = module_command(f"chaos.demo.{name}", *arguments)
    result = subprocess.run(command, env=module_environment(), check=False)
    raise typer.Exit(result.returncode)
