"""Options and output that several commands share."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from bridgehead.schema_version import SCHEMA_VERSION

DataDirOption = Annotated[
    Path,
    typer.Option(
        "--data-dir", envvar="BRIDGEHEAD_DATA_DIR", help="The cluster's folder.", metavar="DIR"
    ),
]
SealKeyOption = Annotated[
    Path | None,
    typer.Option(
        "--seal-key",
        metavar="FILE",
        help="The file with the key that signs manifests; only the file's owner may access it.",
    ),
]
UnsealedOption = Annotated[bool, typer.Option("--unsealed", help="Trust a run that is not sealed.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

DEFAULT_DATA_DIR = Path(".bridgehead")

_DURATION_PATTERN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration_seconds(text: str) -> float:
    """Parse `5s`, `500ms`, `1m`, `2h` or `5` (seconds); return seconds.

    Raises:
        typer.BadParameter: the text has another form.
    """
    match = _DURATION_PATTERN.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a duration: write 5s, 500ms or 1m.")
    return float(match[1]) * _UNIT_SECONDS[match[2] or "s"]


def print_json(document: dict[str, Any]) -> None:
    """Print one document with its `schema_version` on standard output."""
    document = {"schema_version": SCHEMA_VERSION, **document}
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    sys.stdout.flush()


def say(sentence: str) -> None:
    """Print one line on standard output and flush it."""
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()


def say_on_stderr(sentence: str) -> None:
    """Print one line for people on standard error and flush it."""
    sys.stderr.write(sentence + "\n")
    sys.stderr.flush()


def seal_options(seal_key: Path | None, *, unsealed: bool = False) -> list[str]:
    """Return the arguments of a judge for these options."""
    key = [] if seal_key is None else [f"--seal-key={seal_key}"]
    return [*key, *(["--unsealed"] if unsealed else [])]


def run_module(module: str, *arguments: str) -> NoReturn:
    """Replace this command by a module of the application tree, which then gets all signals.

    Raises:
        ClusterError: this installation does not contain the module.
    """
    from bridgehead.application import application_root, module_command, module_environment
    from bridgehead.cluster.errors import ClusterError

    path = application_root().joinpath(*module.split("."))
    if not path.with_suffix(".py").is_file() and not (path / "__main__.py").is_file():
        raise ClusterError(
            f"`{module}` is missing from this installation: install bridgehead again."
        )
    command = module_command("bridgehead.cli.run_module", module, *arguments)
    sys.stdout.flush()
    os.execve(command[0], command, module_environment())  # noqa: S606
