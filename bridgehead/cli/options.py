"""Options that several commands share, and how they print."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

DataDirOption = Annotated[
    Path,
    typer.Option(
        "--data-dir", envvar="BRIDGEHEAD_DATA_DIR", help="The cluster's folder.", metavar="DIR"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

DEFAULT_DATA_DIR = Path(".bridgehead")

_DURATION_PATTERN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m)?")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}


def duration_seconds(text: str) -> float:
    """`5s`, `500ms`, `1m` or `5` (seconds) as seconds.

    Raises:
        typer.BadParameter: it is none of these.
    """
    match = _DURATION_PATTERN.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is no duration such as 5s or 500ms.")
    return float(match[1]) * _UNIT_SECONDS[match[2] or "s"]


def print_json(document: dict[str, Any]) -> None:
    """One document on standard output."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    sys.stdout.flush()


def say(sentence: str) -> None:
    """One line on standard output, at once."""
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()


def say_aside(sentence: str) -> None:
    """One line on standard error, at once: not part of what a program reads."""
    sys.stderr.write(sentence + "\n")
    sys.stderr.flush()
