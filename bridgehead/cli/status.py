"""`bridgehead status`, `heal`, `reset`, `down` and `logs`."""

from __future__ import annotations

import sys
import textwrap
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from bridgehead.cli.options import (
    DEFAULT_DATA_DIR,
    DataDirOption,
    JsonOption,
    print_json,
    say,
)

_FOLLOW_POLL_S = 0.2
_COLUMNS = 80
_SKIPPED_SHOWN = 5
_WATCH_POLL_S = 1.0
_CLEAR_SCREEN = "\x1b[H\x1b[2J"


def status(
    *,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show the status every second, until Ctrl-C.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Show brokers, controller and ZooKeeper."""
    from bridgehead.cluster.client import ControlClient

    client = ControlClient(data_dir)
    while True:
        document = client.status()
        if json_output:
            print_json(document)
        else:
            if watch:
                say(_CLEAR_SCREEN + time.strftime("%H:%M:%S") if sys.stdout.isatty() else "")
            _show(document)
        if not watch:
            return
        time.sleep(_WATCH_POLL_S)


def _show(document: dict[str, Any]) -> None:
    controller, epoch = document["controller_id"], document["controller_epoch"]
    say(f"phase       {document['phase']}")
    kind = "broker" if controller in {broker["id"] for broker in document["brokers"]} else "KRaft"
    say(f"controller  {'none' if controller is None else f'{kind} {controller}, epoch {epoch}'}")
    say(f"ZooKeeper   {document['zookeeper_connect']}")
    if document["zookeeper_problem"]:
        say(f"problem     {document['zookeeper_problem']}")
    for line in (*_znode_problems(document["brokers"]), *_migration(document["brokers"])):
        say(line)
    rows = [("id", "condition", "pid", "role", "listeners", "metrics")]
    for broker in document["brokers"]:
        state = broker["state"] or {}
        listeners = (f"{name}://{at}" for name, at in broker["listeners"].items())
        rows.append(
            (
                str(broker["id"]),
                broker["condition"],
                str(broker["pid"] or "-"),
                "controller" if state.get("is_controller") else "standby" if state else "-",
                ",".join(listeners) or "-",
                (broker["metrics_url"] or "-").removeprefix("http://").removesuffix("/metrics"),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    say("")
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("  ".join(cells).rstrip())


def _znode_problems(brokers: list[dict[str, Any]]) -> list[str]:
    """Return lines about znodes that keep a controller from its work, or that it skips."""
    lines = []
    states = [broker["state"] or {} for broker in brokers]
    problems = [state.get("election_problem") for state in states]
    if not any(state.get("is_controller") for state in states) and any(problems):
        lines.append(f"problem     {next(filter(None, problems))}")
    for state in states:
        skipped = state.get("skipped_znodes") or {"count": 0, "first": []}
        if skipped["count"]:
            lines.append(f"skipped     {skipped['count']} invalid znodes; the first ones:")
            lines += [f"            {error}" for error in skipped["first"][:_SKIPPED_SHOWN]]
    return [line if len(line) <= _COLUMNS else f"{line[: _COLUMNS - 3]}..." for line in lines]


def _migration(brokers: list[dict[str, Any]]) -> list[str]:
    """Return lines about the registrations with KRaft controllers; none without a migration."""
    migrations = {
        broker["id"]: migration
        for broker in brokers
        if (migration := (broker["state"] or {}).get("migration"))
    }
    if not migrations:
        return []
    registered = sum(migration["registered"] for migration in migrations.values())
    lines = [f"migration   {registered} of {len(brokers)} brokers are registered with KRaft"]
    for broker_id, migration in migrations.items():
        if migration["problem"]:
            text = f"broker {broker_id}: {migration['problem']}"
            lines += textwrap.wrap(
                text, _COLUMNS, initial_indent=" " * 12, subsequent_indent=" " * 12
            )
    return lines


def reset(*, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Make a running cluster like new.

    It starts the brokers that are down. It removes fault rules, topics, dynamic broker configs,
    client quotas, and the users and ACLs that clients created.
    """
    from bridgehead.cluster.client import ControlClient

    started = ControlClient(data_dir).reset()["started"]
    if started:
        say(f"Started again: broker {', '.join(map(str, started))}.")
    say("The cluster is like new.")


def heal(*, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Undo faults: start processes and remove fault rules.

    Frozen processes resume. The command returns when every broker serves and knows all others.
    """
    from bridgehead.cluster.client import ControlClient

    started = ControlClient(data_dir).heal()["started"]
    which = f"Started: {', '.join(map(str, started))}." if started else "All brokers were running."
    say(which)


def down(*, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Stop the cluster and keep its data."""
    from bridgehead.cluster.client import ControlClient

    stopped = ControlClient(data_dir).down(
        on_wait=lambda: say("Sealing the evidence; with gigabytes of it, this takes minutes ...")
    )
    say("Stopped." if stopped else f"No cluster is running in {data_dir.resolve()}.")


def logs(
    broker: Annotated[
        int | None, typer.Argument(metavar="[ID]", help="A broker; default: all.")
    ] = None,
    *,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    lines: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many lines, from the end of each log.")
    ] = 20,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new lines as they are written.")
    ] = False,
) -> None:
    """Print the logs of running and stopped brokers."""
    from bridgehead.cluster.node_logs import last_lines, log_files

    chosen = [path for _, path in log_files(data_dir.resolve(), broker)]
    ends = {}
    for path in chosen:
        shown, ends[path] = last_lines(path, lines, whole=follow)
        for line in shown:
            say(f"[{path.parent.name}] {line}" if len(chosen) > 1 else line)
    while follow:
        for path in chosen:
            ends[path] = _print_new(path, ends[path], prefix=len(chosen) > 1)
        time.sleep(_FOLLOW_POLL_S)


def _print_new(path: Path, start: int, *, prefix: bool) -> int:
    """Print the complete lines after the offset `start`; return the offset of their end."""
    with path.open("rb") as log:
        log.seek(start)
        data = log.read()
    whole = data[: data.rfind(b"\n") + 1]
    for line in whole.decode("utf-8", "replace").splitlines():
        say(f"[{path.parent.name}] {line}" if prefix else line)
    return start + len(whole)
