"""`bridgehead up`: start a cluster, in the foreground or detached."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bridgehead.cli.options import (
    DEFAULT_DATA_DIR,
    DataDirOption,
    JsonOption,
    SealKeyOption,
    duration_seconds,
    print_json,
    say,
    say_on_stderr,
)

if TYPE_CHECKING:
    from bridgehead.cluster.settings import ClusterSettings

BrokersOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        envvar="BRIDGEHEAD_BROKERS",
        help="Number of brokers.",
        show_default="3",
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="BRIDGEHEAD_CONFIG",
        help="cluster.yaml, or Kafka's server.properties.",
    ),
]
OverrideOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[ID:]KEY=VALUE", help="Set a property, for all brokers or for broker ID."
    ),
]
BasePortOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=65535,
        metavar="PORT",
        envvar="BRIDGEHEAD_BASE_PORT",
        help="First broker's port.",
        show_default="9092",
    ),
]
PortsOption = Annotated[
    Literal["auto"] | None, typer.Option(metavar="auto", help="Choose free ports.")
]
ControllerOption = Annotated[
    int | None, typer.Option(metavar="ID", help="The broker that is controller whenever it runs.")
]
MigrateOption = Annotated[
    str | None,
    typer.Option(
        metavar="ID@HOST:PORT[,...]",
        help="Register all brokers with these KRaft controllers, which migrate the metadata.",
    ),
]
ZooKeeperOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT[,...][/CHROOT]",
        help="Use a running ZooKeeper instead of the embedded one.",
    ),
]
AdoptOption = Annotated[
    bool,
    typer.Option(
        "--adopt", help="With --zookeeper: own and change the metadata of another cluster."
    ),
]
ReadOnlyOption = Annotated[
    bool,
    typer.Option(
        "--read-only", help="With --zookeeper: use a copy of its metadata, and only read it."
    ),
]
AllowRemotePlaintextOption = Annotated[
    bool,
    typer.Option(
        "--allow-remote-plaintext",
        help="Allow listeners without authentication on addresses other than loopback.",
    ),
]
StopWithPidOption = Annotated[
    int | None, typer.Option(min=1, metavar="PID", help="Stop the cluster when process PID exits.")
]
TtlOption = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Stop the cluster after this time, such as 30m or 2h."),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Do not start if nothing reads one of the properties.")
]
ControlOption = Annotated[
    str | None,
    typer.Option(
        metavar="[HOST:]PORT",
        envvar="BRIDGEHEAD_CONTROL",
        help="Serve the control API (docs/control-api.md); port 0 means a free port.",
    ),
]
AdvertisedOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST[:PORT,...]",
        envvar="BRIDGEHEAD_ADVERTISED",
        help="The host of all brokers for clients, or HOST:PORT of each; `late`: wait until the "
        "control API gets them.",
    ),
]
EnvironmentOption = Annotated[
    bool, typer.Option("--environment", help="Also read properties from KAFKA_* variables.")
]
UntilEofOption = Annotated[
    bool,
    typer.Option("--until-eof", help="Stop at the end of standard input, too (a child process)."),
]
DetachOption = Annotated[
    bool, typer.Option("--detach", help="Return when the cluster is ready; stop it with `down`.")
]
UiOption = Annotated[
    bool, typer.Option("--ui", help="Also serve the page of `bridgehead ui`, until Ctrl-C.")
]


def up(
    *,
    brokers: BrokersOption = None,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    config: ConfigOption = None,
    override: OverrideOption = None,
    base_port: BasePortOption = None,
    ports: PortsOption = None,
    controller: ControllerOption = None,
    migrate: MigrateOption = None,
    zookeeper: ZooKeeperOption = None,
    adopt: AdoptOption = False,
    read_only: ReadOnlyOption = False,
    allow_remote_plaintext: AllowRemotePlaintextOption = False,
    seal_key: SealKeyOption = None,
    stop_with_pid: StopWithPidOption = None,
    ttl: TtlOption = None,
    strict: StrictOption = False,
    control: ControlOption = None,
    advertised: AdvertisedOption = None,
    environment: EnvironmentOption = False,
    detach: DetachOption = False,
    ui: UiOption = False,
    until_eof: UntilEofOption = False,
    json_output: JsonOption = False,
) -> None:
    """Start ZooKeeper and brokers; Ctrl-C stops them.

    The cluster is ready when every broker answers Metadata with all brokers and the controller.
    """
    from bridgehead.cluster.cluster_file import load_settings, migration_overrides
    from bridgehead.cluster.up_environment import broker_properties, cluster_document, control_at

    _check_detach(detach, ui=ui, until_eof=until_eof)
    settings = load_settings(
        data_dir,
        config=config,
        overrides=(*migration_overrides(migrate), *(override or ())),
        brokers=brokers,
        base_port=base_port,
        ports_auto=ports == "auto",
        controller=controller,
        zookeeper=zookeeper,
        allow_remote_plaintext=allow_remote_plaintext,
        seal_key=seal_key,
        stop_with_pid=stop_with_pid,
        ttl_s=None if ttl is None else duration_seconds(ttl),
        adopt=adopt,
        read_only=read_only,
        document=cluster_document(),
        environment=broker_properties() if environment else {},
        control=None if control is None else control_at(control),
        advertised=advertised,
    )
    _check_properties(settings, strict=strict)
    flags = {"detach": detach, "until_eof": until_eof, "ui": ui, "json_output": json_output}
    _start(settings, data_dir, **flags)


def _check_detach(detach: bool, *, ui: bool, until_eof: bool) -> None:
    from bridgehead.cluster.errors import ClusterError

    if detach and ui:
        raise ClusterError("--ui ends with the command: after --detach, run `bridgehead ui`.")
    if detach and until_eof:
        raise typer.BadParameter("--detach and --until-eof exclude each other: give one of them.")


def _check_properties(settings: ClusterSettings, *, strict: bool) -> None:
    """Warn of properties that nothing reads; with `strict` raise ClusterError instead."""
    from bridgehead.cluster.errors import ClusterError
    from bridgehead.cluster.known_properties import unknown_properties

    of_nodes = (name for node in settings.node_properties.values() for name in node)
    sentences = unknown_properties(dict.fromkeys([*settings.properties, *of_nodes]))
    if sentences and strict:
        raise ClusterError(" ".join(sentences))
    for sentence in sentences:
        say_on_stderr(f"Warning: {sentence}")


def _start(
    settings: ClusterSettings,
    data_dir: Path,
    *,
    detach: bool,
    until_eof: bool,
    ui: bool,
    json_output: bool,
) -> None:
    say_on_stderr(f"Starting {settings.brokers} brokers in {data_dir.resolve()} ...")
    if detach:
        from bridgehead.cluster.launch import launch

        _, document = launch(settings, detached=True)
        _show(document, data_dir, json_output=json_output, detached=True)
        return
    from bridgehead.cluster.supervisor import supervise
    from bridgehead.ui.processes import Page

    def on_ready(document: dict[str, Any]) -> None:
        _show(document, data_dir, json_output=json_output, detached=False)
        page.start(say_on_stderr)

    with Page(data_dir if ui else None) as page:
        supervise(
            settings,
            announce=say_on_stderr,
            on_ready=on_ready,
            parent_pipe=sys.stdin.fileno() if until_eof else None,
        )
    say_on_stderr("Stopped.")


def _show(document: dict[str, Any], data_dir: Path, *, json_output: bool, detached: bool) -> None:
    if json_output:
        print_json(document)
        return
    controller = document["controller_id"]
    kind = "broker" if controller in {broker["id"] for broker in document["brokers"]} else "KRaft's"
    say(f"Ready: {len(document['brokers'])} brokers, the controller is {kind} {controller}.")
    say(f"  bootstrap servers  {document['bootstrap_servers']}")
    say(f"  ZooKeeper          {document['zookeeper_connect']}")
    say(f"  evidence           {document['evidence_dir']}")
    if document["control_url"]:
        say(f"  control API        {document['control_url']}")
        say(f"    its token is in  {document['control_token_file']}")
    option = "" if data_dir == DEFAULT_DATA_DIR else f" --data-dir {data_dir}"
    say(f"`bridgehead down{option}` stops it." if detached else "Ctrl-C stops it.")
