"""`bridgehead zookeeper run`: one ZooKeeper server in the foreground, for containers."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Run a ZooKeeper server.")

_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}] %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""


@app.callback()
def zookeeper() -> None:
    """Keep `run` a command of its own."""


@app.command()
def run(
    *,
    jars: Annotated[
        Path | None,
        typer.Option(
            envvar="BRIDGEHEAD_ZOOKEEPER_JARS",
            help="The folder of its jars.",
            show_default="PySpark's",
        ),
    ] = None,
) -> None:
    """Run one server, told by the ZOO_* variables of the official image."""
    from bridgehead.cluster import zookeeper_alone
    from bridgehead.cluster.errors import ClusterError
    from bridgehead.cluster.java import find_java
    from bridgehead.cluster.zookeeper import JUTE_BUFFER_BYTES_MAX, MAIN_CLASS, class_path

    configuration = zookeeper_alone.server_configuration(os.environ)
    member = zookeeper_alone.my_id(os.environ)
    data = zookeeper_alone.data_folder(os.environ)
    java, path = find_java(), class_path(jars)
    try:
        for folder in (data, zookeeper_alone.log_folder(os.environ)):
            folder.mkdir(parents=True, exist_ok=True)
        (data / "zoo.cfg").write_text(configuration, encoding="utf-8")
        (data / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
        (data / "myid").write_text(f"{member}\n", encoding="utf-8")
    except OSError as error:
        raise ClusterError(
            f"{data} cannot be written ({error.strerror}): mount a volume there, or set "
            "ZOO_DATA_DIR and ZOO_DATA_LOG_DIR."
        ) from error
    command = [
        str(java),
        f"-Djute.maxbuffer={JUTE_BUFFER_BYTES_MAX}",
        f"-Dlog4j2.configurationFile={data / 'log4j2.properties'}",
        "-Dzookeeper.jmx.log4j.disable=true",
        *shlex.split(os.environ.get("JVMFLAGS", "")),
        "-cp",
        path,
        MAIN_CLASS,
        str(data / "zoo.cfg"),
    ]
    sys.stdout.flush()
    # The server takes this process's place, so that signals and exit status are its own.
    os.execv(command[0], command)  # noqa: S606 - that is the command
