"""The `bridgehead` command: its groups, and what a failure looks like.

Read first: 0 held or done, 1 a property failed, 2 usage, environment or no data. A failure is one
sentence on standard error; `--debug` shows the stack trace instead. To add a command: a file here,
a line in COMMANDS or GROUPS.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import bridgehead
from bridgehead.cli import (
    controller,
    demo,
    evidence,
    judge,
    node,
    pipeline,
    status,
    up,
    upgrade,
    zookeeper,
)
from bridgehead.cli.options import say, say_aside
from bridgehead.cluster.errors import ClusterError


def version() -> None:
    """Print the version."""
    say(f"bridgehead {bridgehead.__version__}")


COMMANDS = (
    *(up.up, status.status, status.down, status.logs, upgrade.upgrade, judge.judge),
    version,
)
GROUPS = (
    ("node", node.app),
    ("controller", controller.app),
    ("zookeeper", zookeeper.app),
    ("evidence", evidence.app),
    ("demo", demo.app),
    ("pipeline", pipeline.app),
)


def build_app() -> typer.Typer:
    """The command with everything in it."""
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        help="Kafka's bridge release (KIP-590) on one laptop.",
    )

    @app.callback()
    def options(
        debug: Annotated[
            bool, typer.Option("--debug", help="Show stack traces of failures.")
        ] = False,
    ) -> None:
        """`main` looks for --debug itself: failures end up there."""

    for command in COMMANDS:
        app.command()(command)
    for name, group in GROUPS:
        app.add_typer(group, name=name)
    return app


def main() -> None:
    """Runs the command line and exits."""
    try:
        build_app()(prog_name="bridgehead")
    except Exception as error:
        if "--debug" in sys.argv[1:]:
            raise
        sentence = str(error)
        if not isinstance(error, ClusterError):
            sentence = f"Unexpected {type(error).__name__}: {error} (--debug shows where)."
        say_aside(f"bridgehead: {sentence}")
        sys.exit(2)


if __name__ == "__main__":
    main()
