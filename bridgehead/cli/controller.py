"""`bridgehead controller show | wait | move | kill | freeze | expire`."""

from __future__ import annotations

from typing import Annotated

import typer

from bridgehead.cli.options import (
    DEFAULT_DATA_DIR,
    DataDirOption,
    JsonOption,
    duration_seconds,
    print_json,
    say,
)

app = typer.Typer(no_args_is_help=True, help="Show, move and disrupt the controller.")


@app.command()
def show(*, data_dir: DataDirOption = DEFAULT_DATA_DIR, json_output: JsonOption = False) -> None:
    """Show the active controller and its epoch.

    Exit code 3: there is no active controller.
    """
    from bridgehead.cluster.client import ControlClient
    from bridgehead.exit_codes import ExitCode

    response = ControlClient(data_dir).controller()
    if json_output:
        print_json(response)
    elif response["controller_id"] is None:
        say("There is no active controller.")
    else:
        broker, epoch = response["controller_id"], response["controller_epoch"]
        say(f"Broker {broker} is controller, epoch {epoch}.")
    if response["controller_id"] is None:
        raise typer.Exit(ExitCode.UNDECIDED)


@app.command()
def wait(
    *,
    other_than: Annotated[
        int | None,
        typer.Option(metavar="ID", help="A broker that does not count.", show_default=False),
    ] = None,
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long to wait, such as 30s or 1m.")
    ] = "30s",
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
) -> None:
    """Wait until every broker that answers names the same active controller; print its id."""
    from bridgehead.cluster.client import ControlClient

    response = ControlClient(data_dir).wait_for_controller(
        other_than=other_than, timeout_s=duration_seconds(timeout)
    )
    say(str(response["controller_id"]))


@app.command()
def move(
    broker: Annotated[int, typer.Argument(metavar="ID", help="The new controller's broker id.")],
    *,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
) -> None:
    """Make a broker the controller.

    The command returns when every broker knows the new controller.
    """
    from bridgehead.cluster.client import ControlClient

    response = ControlClient(data_dir).move_controller(broker)
    if response["moved"]:
        say(f"The controller moved from broker {response['from']} to broker {broker}.")
    else:
        say(f"Broker {broker} is already the controller.")


@app.command()
def kill(*, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Kill the controller's process (SIGKILL)."""
    from bridgehead.cluster.client import ControlClient

    response = ControlClient(data_dir).kill_controller()
    say(f"The controller, broker {response['id']} (pid {response['pid']}), was killed.")


@app.command()
def freeze(
    *,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    duration: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long, such as 5s, 500ms or 1m.")
    ] = "5s",
) -> None:
    """Freeze the controller's process (SIGSTOP) for a while.

    The command returns immediately.
    """
    from bridgehead.cluster.client import ControlClient

    response = ControlClient(data_dir).freeze_controller(duration_seconds(duration))
    say(f"The controller, broker {response['id']}, is frozen for {response['seconds']:g} s.")


@app.command()
def expire(*, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Expire the controller's ZooKeeper session."""
    from bridgehead.cluster.client import ControlClient

    response = ControlClient(data_dir).expire_controller()
    say(f"The ZooKeeper session of the controller, broker {response['id']}, has expired.")
