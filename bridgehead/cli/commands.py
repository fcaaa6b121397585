"""The subcommands of `bridgehead`.

To add one, add a file here and a line in COMMANDS or GROUPS. Kafka's tools are in `tools`.
"""

from __future__ import annotations

from typing import Annotated

import typer

import bridgehead
from bridgehead.cli import (
    controller,
    faults,
    modules,
    node,
    rehearse,
    status,
    ui,
    up,
    upgrade,
    zookeeper,
)
from bridgehead.cli.options import say
from bridgehead.cli.tools import TOOLS
from bridgehead.cli.tools.tool import ToolCommand, as_command


def version() -> None:
    """Print the version."""
    say(f"bridgehead {bridgehead.__version__}")


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


COMMANDS = (
    *(up.up, status.status, status.heal, status.reset, status.down, status.logs),
    *(upgrade.upgrade, modules.judge, modules.trace, ui.ui, ui.diagram),
    version,
)
GROUPS = (
    ("node", node.app),
    ("controller", controller.app),
    ("zookeeper", zookeeper.app),
    ("evidence", modules.evidence_app),
    ("demo", modules.demo_app),
    ("pipeline", modules.pipeline_app),
    ("chaos", modules.chaos_app),
    ("rehearse", rehearse.app),
    ("faults", faults.app),
)


def build_app() -> typer.Typer:
    """Return the command with all its subcommands."""
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # rich's tables show flags as options with a value
        help="Kafka's bridge release (KIP-590) on one laptop.",
    )

    @app.callback()
    def options(
        debug: Annotated[
            bool, typer.Option("--debug", help="Show stack traces of errors.")
        ] = False,
        version: Annotated[
            bool,
            typer.Option(
                "--version", callback=_print_version, is_eager=True, help="Print the version."
            ),
        ] = False,
    ) -> None:
        """`main` evaluates --debug."""

    for command in COMMANDS:
        app.command()(command)
    for tool in TOOLS:
        app.command(tool.name, cls=ToolCommand)(as_command(tool))
    for name, group in GROUPS:
        app.add_typer(group, name=name)
    return app
