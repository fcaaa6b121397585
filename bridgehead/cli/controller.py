"""`bridgehead controller show | move | kill | freeze | expire`: look at the office or attack it."""

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

app = typer.Typer(no_args_is_help=True, help="Show, move and attack the controller.")


@app.command()
def show(*, data_dir: DataDirOption = DEFAULT_DATA_DIR, json_output: JsonOption = False) -> None:
    """Show which broker is controller, and its epoch."""
    from bridgehead.cluster.client import ClusterClient

    answer = ClusterClient(data_dir).controller()
    if json_output:
        print_json(answer)
    elif answer["controller_id"] is None:
        say("No controller is in office now.")
    else:
        say(f"Broker {answer['controller_id']} is controller, epoch {answer['controller_epoch']}.")


@app.command()
def move(
    broker: Annotated[int, typer.Argument(metavar="ID", help="The broker that shall be it.")],
    *,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
) -> None:
    """Make a broker the controller, in an orderly way; returns when every broker knows it."""
    from bridgehead.cluster.client import ClusterClient

    answer = ClusterClient(data_dir).move_controller(broker)
    if answer["moved"]:
        say(f"Broker {broker} is controller; it was broker {answer['from']}.")
    else:
        say(f"Broker {broker} was controller already.")


@app.command()
def kill(*, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Kill the controller's process (SIGKILL)."""
    from bridgehead.cluster.client import ClusterClient

    answer = ClusterClient(data_dir).kill_controller()
    say(f"The controller, broker {answer['id']} (pid {answer['pid']}), was killed.")


@app.command()
def freeze(
    *,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    duration: Annotated[str, typer.Option("--for", help="How long: 5s, 500ms, 1m.")] = "5s",
) -> None:
    """Freeze the controller's process (SIGSTOP) and let it go on later; returns at once."""
    from bridgehead.cluster.client import ClusterClient

    answer = ClusterClient(data_dir).freeze_controller(duration_seconds(duration))
    say(f"The controller, broker {answer['id']}, stands still for {answer['seconds']:g} s.")


@app.command()
def expire(*, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Expire the controller's ZooKeeper session, as its timeout would."""
    from bridgehead.cluster.client import ClusterClient

    answer = ClusterClient(data_dir).expire_controller()
    say(f"The session of the controller, broker {answer['id']}, was ended.")
