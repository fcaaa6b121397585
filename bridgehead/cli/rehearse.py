"""`bridgehead rehearse`: a migration from ZooKeeper to KRaft, before it is real."""

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
    sources = [f"{option}={value}" for option, value in named.items() if value is not None]
    if len(sources) != 1:
        options = "--zookeeper, --snapshot or --dump" if dumps else "--zookeeper or --snapshot"
        raise typer.BadParameter(f"Name one source: {options}.")
    return sources


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


class Phase(StrEnum):
    """The phases of a migration at which a rehearsal can end, with Kafka's names."""

    HYBRID = "hybrid"
    DUAL_WRITE = "dual-write"
    FINALIZE = "finalize"


class Trap(StrEnum):
    """What a rollback can forget."""

    EPOCHS = "epochs"
    CONTROLLER = "controller"
    MIGRATION = "migration"


PatienceOption = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=5,
        help="A controller that waits longer for the same waits for ever. On a slow machine more "
        "than 60 lets the other steps take longer, too.",
    ),
]


UntilOption = Annotated[
    Phase,
    typer.Option(
        help="hybrid: KRaft's controller, brokers in ZooKeeper mode. dual-write: the brokers are "
        "real Kafka brokers in KRaft mode. finalize: without ZooKeeper."
    ),
]
BrokersOption = Annotated[
    str, typer.Option(metavar="ID,...", help="The brokers; default: those that are registered.")
]
LevelOption = Annotated[
    str, typer.Option(metavar="VERSION", help="The brokers' inter.broker.protocol.version.")
]
ControllersOption = Annotated[int, typer.Option(metavar="N", help="1 or 3 controllers.")]
LoadOption = Annotated[
    bool, typer.Option("--load", help="Send admin writes in every phase, and judge them.")
]
RecordsOption = Annotated[
    bool,
    typer.Option("--records", help="Produce and consume in every phase. Needs confluent-kafka."),
]
FaultOption = Annotated[
    list[str] | None,
    typer.Option(metavar="PHASE:FAULT", help="Such as hybrid:kill-controller; can be repeated."),
]
KeepMigrationOption = Annotated[
    bool, typer.Option("--keep-migration-znode", help="Show what a leftover /migration does.")
]
DropMigrationOption = Annotated[
    bool, typer.Option("--drop-migration-znode", help="Leave /migration out of the copy.")
]
HoldControllerOption = Annotated[
    bool,
    typer.Option(
        "--hold-controller", help="No ZooKeeper controller changes the copy before Kafka does."
    ),
]
OutOption = Annotated[
    Path, typer.Option(metavar="DIR", help="The folder for the rehearsal and its report.")
]


@app.command()
def run(
    *,
    zookeeper: ZooKeeperOption = None,
    snapshot: SnapshotOption = None,
    dump: DumpOption = None,
    chroot: ChrootOption = None,
    transaction_logs: TransactionLogsOption = None,
    key: KeyOption = None,
    server_properties: ServerPropertiesOption = None,
    kafka: KafkaOption = KafkaVersion.V3_9_1,
    until: UntilOption = Phase.HYBRID,
    brokers: BrokersOption = "",
    level: LevelOption = "",
    controllers: ControllersOption = 1,
    load: LoadOption = False,
    records: RecordsOption = False,
    fault: FaultOption = None,
    keep_migration_znode: KeepMigrationOption = False,
    drop_migration_znode: DropMigrationOption = False,
    hold_controller: HoldControllerOption = False,
    patience: PatienceOption = 60.0,
    out: OutOption = Path(".rehearsal"),
) -> None:
    """Migrate a copy of the metadata with a real KRaft controller.

    The source is only read. Our nodes take the place of the brokers, on loopback. Needs Java 17 and
    `make kafka-jars`. Exit code 0: everything was kept. 1: something is lost or unexplained, or the
    migration did not complete. 4: it cannot be rehearsed here.
    """
    run_module(
        "rehearse.run",
        *source_arguments(zookeeper, snapshot, dump),
        *optional_arguments(
            chroot=chroot, transaction_logs=transaction_logs, key=key, kafka=kafka, until=until,
            brokers=brokers, level=level, controllers=controllers, patience=patience, out=out,
        ),
        *(f"--server-properties={file}" for file in server_properties or ()),
        *(f"--fault={text}" for text in fault or ()),
        *_flags(
            load=load,
            records=records,
            keep_migration_znode=keep_migration_znode,
            drop_migration_znode=drop_migration_znode,
            hold_controller=hold_controller,
        ),
    )  # fmt: skip


@app.command()
def rollback(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of `rehearse run --out`.")],
    *,
    again: Annotated[
        bool, typer.Option("--again", help="Migrate once more after the rollback.")
    ] = False,
    trap: Annotated[
        Trap | None, typer.Option(help="Leave out a step, and show what follows.")
    ] = None,
    patience: PatienceOption = 60.0,
) -> None:
    """Go back to ZooKeeper from where `rehearse run` ended: hybrid or dual-write.

    Exit code 0: everything is as before the migration. 1: something is not, or no broker could
    become controller.
    """
    run_module(
        "rehearse.rollback",
        str(run),
        *optional_arguments(trap=trap, patience=patience),
        *_flags(again=again),
    )


def _flags(**options: bool) -> list[str]:
    return [f"--{name.replace('_', '-')}" for name, is_set in options.items() if is_set]
