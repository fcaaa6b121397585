"""`bridgehead zookeeper start | run | dump`: restart ZooKeeper, run one, or dump its znodes."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from bridgehead.cli.options import DEFAULT_DATA_DIR, DataDirOption, run_module, say
from bridgehead.cli.rehearse import (
    ChrootOption,
    ServerPropertiesOption,
    SnapshotOption,
    TransactionLogsOption,
    ZooKeeperOption,
    optional_arguments,
    source_arguments,
)

app = typer.Typer(no_args_is_help=True, help="Restart a cluster's ZooKeeper, run one, or dump one.")


@app.command()
def start(*, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Start a cluster's ZooKeeper again after it has exited.

    The command returns when ZooKeeper serves. It works only for the embedded ZooKeeper.
    """
    from bridgehead.cluster.client import ControlClient

    response = ControlClient(data_dir).start_zookeeper()
    pids = ", ".join(map(str, response["pids"]))
    say(f"ZooKeeper serves at {response['connect']}, as pid {pids}.")


@app.command()
def run(
    *,
    jars: Annotated[
        Path | None,
        typer.Option(
            envvar="BRIDGEHEAD_ZOOKEEPER_JARS",
            metavar="DIR",
            help="The folder of ZooKeeper's jars.",
            show_default="the installed ones",
        ),
    ] = None,
) -> None:
    """Run one ZooKeeper server in the foreground.

    The ZOO_* variables of the official image configure the server.
    """
    from bridgehead.cluster import zookeeper_alone
    from bridgehead.cluster.data_directory import make_private
    from bridgehead.cluster.errors import ClusterError
    from bridgehead.cluster.java import archive_file, archive_flags, class_path, find_java
    from bridgehead.cluster.zookeeper import JUTE_BUFFER_BYTES_MAX, LOG_FILE, LOGGING, MAIN_CLASS

    configuration = zookeeper_alone.server_configuration(os.environ)
    member = zookeeper_alone.my_id(os.environ)
    data = zookeeper_alone.data_folder(os.environ)
    java, path = find_java(), class_path(jars)
    log = zookeeper_alone.log_folder(os.environ)
    try:
        make_private(data / name for name in ("zoo.cfg", "myid", "version-2"))
        make_private([log / "version-2"])
        for folder in (data, log):
            folder.mkdir(parents=True, exist_ok=True)
        (data / "zoo.cfg").write_text(configuration, encoding="utf-8")
        (data / "myid").write_text(f"{member}\n", encoding="utf-8")
    except OSError as error:
        raise ClusterError(
            f"{data} cannot be written ({error.strerror}): mount a volume there, or set "
            "ZOO_DATA_DIR and ZOO_DATA_LOG_DIR."
        ) from error
    command = [
        str(java),
        f"-Djute.maxbuffer={JUTE_BUFFER_BYTES_MAX}",
        *LOGGING,
        f"-D{LOG_FILE}=system.out",
        *archive_flags(archive_file(java, path)),
        *shlex.split(os.environ.get("JVMFLAGS", "")),
        "-cp",
        path,
        MAIN_CLASS,
        str(data / "zoo.cfg"),
    ]
    sys.stdout.flush()
    # Replaces this process, so that signals reach the server and its exit status is returned.
    os.execv(command[0], command)  # noqa: S606


@app.command()
def dump(
    *,
    to: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    zookeeper: ZooKeeperOption = None,
    snapshot: SnapshotOption = None,
    chroot: ChrootOption = None,
    transaction_logs: TransactionLogsOption = None,
    server_properties: ServerPropertiesOption = None,
    seal: Annotated[
        Path | None,
        typer.Option(
            metavar="KEYFILE",
            help="Keep the secrets, encrypted with the key in KEYFILE; a new one is created.",
        ),
    ] = None,
) -> None:
    """Write Kafka's znodes to a file, without secrets, for `bridgehead rehearse`.

    Nothing is written to ZooKeeper. Credentials, tokens, passwords and unknown configs are left
    out, unless --seal encrypts them.
    """
    files = [f"--server-properties={file}" for file in server_properties or ()]
    run_module(
        "rehearse.dumping",
        *source_arguments(zookeeper, snapshot, dumps=False),
        *optional_arguments(to=to, chroot=chroot, transaction_logs=transaction_logs, seal=seal),
        *files,
    )
