"""`bridgehead judge DIR`: verdicts over evidence; the judge itself is a process of the tree."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Annotated

import typer

from bridgehead.cli.options import JsonOption


def judge(
    evidence: Annotated[Path, typer.Argument(metavar="DIR", help="A cluster's folder.")],
    *,
    json_output: JsonOption = False,
) -> None:
    """Judge what a cluster did: exit 0 when all held, 1 when not, 2 when it cannot be told."""
    from bridgehead.application import application_root, module_command, module_environment
    from bridgehead.cluster.errors import ClusterError

    if not evidence.is_dir():
        raise ClusterError(f"{evidence} is no folder: name the one that --data-dir named.")
    if not (application_root() / "chaos" / "judge.py").is_file():  # Python would exit with 1
        raise ClusterError("This installation holds no judge: install bridgehead again.")
    options = ["--json"] if json_output else []
    result = subprocess.run(
        module_command("chaos.judge", str(evidence), *options),
        env=module_environment(),
        check=False,
    )
    raise typer.Exit(result.returncode)
