"""`bridgehead rehearse scan`: what a migration from ZooKeeper to KRaft would do with metadata."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bridgehead.cli.options import JsonOption, run_module

app = typer.Typer(no_args_is_help=True, help="Rehearse the migration from ZooKeeper to KRaft.")

ZooKeeperOption = Annotated[
    str | None,
    typer.Option(
        "--zookeeper",
        metavar="HOST:PORT[/chroot]",
        help="A running ZooKeeper; it is only read.",
        show_default=False,
    ),
]
SnapshotOption = Annotated[
    Path | None,
    typer.Option("--snapshot", metavar="DIR", help="The dataDir of a ZooKeeper server, or a copy."),
]
TransactionLogsOption = Annotated[
    Path | None,
    typer.Option(
        "--transaction-logs",
        metavar="DIR",
        help="With --snapshot: the dataLogDir, if there is one.",
    ),
]
ChrootOption = Annotated[
    str | None,
    typer.Option("--chroot", metavar="PATH", help="With --snapshot: Kafka's path in ZooKeeper."),
]
DumpOption = Annotated[
    Path | None,
    typer.Option("--dump", metavar="FILE", help="A file of `bridgehead zookeeper dump`."),
]
KeyOption = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="With --dump: the key that opens its secrets."),
]
ServerPropertiesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--server-properties",
        metavar="FILE",
        help="The properties of a broker or a controller; once for each. The first with "
        "zookeeper.* settings says how to connect.",
    ),
]


class KafkaVersion(StrEnum):
    """The releases of Kafka whose migration is known."""

    V3_9_1 = "3.9.1"
    V3_9_2 = "3.9.2"


KafkaOption = Annotated[KafkaVersion, typer.Option("--kafka", help="The controllers' version.")]


def source_arguments(
    zookeeper: str | None,
    snapshot: Path | None,
    dump: Path | None = None,
    *,
    dumps: bool = True,
) -> list[str]:
    """Return the arguments that name the source. Exactly one must be given."""
    named = {"--zookeeper": zookeeper, "--snapshot": snapshot, "--dump": dump}
    given = [f"{option}={value}" for option, value in named.items() if value is not None]
    if len(given) != 1:
        options = "--zookeeper, --snapshot or --dump" if dumps else "--zookeeper or --snapshot"
        raise typer.BadParameter(f"Name one source: {options}.")
    return given


def optional_arguments(**options: object) -> list[str]:
    """Return `--name=value` for each option that is set; names have underscores."""
    return [
        f"--{name.replace('_', '-')}={value}"
        for name, value in options.items()
        if value not in (None, "")
    ]


@app.command()
def scan(
    *,
    zookeeper: ZooKeeperOption = None,
    snapshot: SnapshotOption = None,
    dump: DumpOption = None,
    chroot: ChrootOption = None,
    transaction_logs: TransactionLogsOption = None,
    key: KeyOption = None,
    server_properties: ServerPropertiesOption = None,
    kafka: KafkaOption = KafkaVersion.V3_9_1,
    json_output: JsonOption = False,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the findings as JUnit XML.")
    ] = None,
) -> None:
    """Find metadata that a migration to KRaft stops at, loses or changes.

    Nothing is written to ZooKeeper. Exit code 0: nothing stops the migration or is lost. 1:
    something does or is. 4: the source cannot be read.
    """
    files = [f"--server-properties={file}" for file in server_properties or ()]
    run_module(
        "rehearse.scan",
        *source_arguments(zookeeper, snapshot, dump),
        *optional_arguments(
            chroot=chroot, transaction_logs=transaction_logs, key=key, kafka=kafka, junit=junit
        ),
        *files,
        *(["--json"] if json_output else []),
    )
