"""`bridgehead node start | stop | kill | run`: one broker, of a cluster or standalone."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from bridgehead.cli.options import DEFAULT_DATA_DIR, DataDirOption, say

app = typer.Typer(no_args_is_help=True, help="Start, stop and kill single brokers.")

BrokerArgument = Annotated[int, typer.Argument(metavar="ID", help="The broker's id.")]


@app.command()
def start(broker: BrokerArgument, *, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Start a stopped broker. The command returns when the broker serves."""
    from bridgehead.cluster.client import ControlClient

    response = ControlClient(data_dir).start_node(broker)
    say(f"Broker {broker} serves, as pid {response['pid']}.")


@app.command()
def stop(broker: BrokerArgument, *, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Stop a broker (SIGTERM). It closes its ZooKeeper sessions before it exits."""
    from bridgehead.cluster.client import ControlClient

    response = ControlClient(data_dir).stop_node(broker)
    say(f"Broker {broker} (pid {response['pid']}) has stopped.")


@app.command()
def kill(broker: BrokerArgument, *, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Kill a broker (SIGKILL). Its ZooKeeper sessions stay open until they time out."""
    from bridgehead.cluster.client import ControlClient

    response = ControlClient(data_dir).kill_node(broker)
    say(f"Broker {broker} (pid {response['pid']}) was killed.")


@app.command()
def run(
    *,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The broker's server.properties.", show_default=False),
    ] = None,
    environment: Annotated[
        bool, typer.Option("--environment", help="Also read properties from KAFKA_* variables.")
    ] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            metavar="DIR",
            envvar="BRIDGEHEAD_NODE_DIR",
            help="The broker's folder.",
            show_default=".bridgehead/nodes/ID",
        ),
    ] = None,
    log_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The broker's log.", show_default="standard error"),
    ] = None,
) -> None:
    """Run one broker in the foreground.

    This is for containers and service managers.
    """
    from bridgehead.application import module_command, module_environment
    from bridgehead.cluster.cluster_file import load_properties_file
    from bridgehead.cluster.errors import ClusterError

    if config is None and not environment:
        raise typer.BadParameter(
            "Nothing to run: give --config FILE, or --environment to read KAFKA_* variables."
        )
    properties = {} if config is None else load_properties_file(config)
    for required in () if environment else ("broker.id", "zookeeper.connect"):
        if not properties.get(required):
            raise ClusterError(f"{config} has no `{required}`: add it.")
    if data_dir is None and not properties.get("broker.id"):
        raise ClusterError("The broker needs a folder: give --data-dir DIR.")
    folder = data_dir or DEFAULT_DATA_DIR / "nodes" / properties["broker.id"]
    os.umask(0o077)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ClusterError(
            f"{folder} cannot be written ({error.strerror}): choose another --data-dir."
        ) from error
    command = module_command(
        "node",
        *(("--config", str(config.resolve())) if config is not None else ()),
        *(("--environment",) if environment else ()),
        *("--data-dir", str(folder.resolve())),
        *(("--log-file", str(log_file.resolve())) if log_file is not None else ()),
    )
    sys.stdout.flush()
    # Replaces this process, so that signals reach the broker and its exit status is returned.
    os.execve(command[0], command, module_environment())  # noqa: S606
