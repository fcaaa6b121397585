"""`bridgehead up`: start a cluster, in the foreground or detached."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bridgehead.cli.options import (
    DEFAULT_DATA_DIR,
    DataDirOption,
    JsonOption,
    SealKeyOption,
    print_json,
    say,
    say_on_stderr,
)
from bridgehead.cli.ui import Page

if TYPE_CHECKING:
    from bridgehead.cluster.settings import ClusterSettings

BrokersOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Number of brokers.", show_default="3")
]
ConfigOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="cluster.yaml, or Kafka's server.properties.")
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
        min=1, max=65535, metavar="PORT", help="First broker's port.", show_default="9092"
    ),
]
PortsOption = Annotated[
    Literal["auto"] | None, typer.Option(metavar="auto", help="Choose free ports.")
]
ControllerOption = Annotated[
    int | None, typer.Option(metavar="ID", help="The broker that is controller whenever it runs.")
]
ZooKeeperOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT[,...][/CHROOT]",
        help="Use a running ZooKeeper instead of the embedded one.",
    ),
]
AllowRemotePlaintextOption = Annotated[
    bool,
    typer.Option(
        "--allow-remote-plaintext",
        help="Allow listeners without authentication on addresses other than loopback.",
    ),
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
    zookeeper: ZooKeeperOption = None,
    allow_remote_plaintext: AllowRemotePlaintextOption = False,
    seal_key: SealKeyOption = None,
    detach: DetachOption = False,
    ui: UiOption = False,
    json_output: JsonOption = False,
) -> None:
    """Start ZooKeeper and brokers; Ctrl-C stops them."""
    from bridgehead.cluster.cluster_file import load_settings
    from bridgehead.cluster.errors import ClusterError

    if ui and detach:
        raise ClusterError("--ui ends with the command: after --detach, run `bridgehead ui`.")
    settings = load_settings(
        data_dir,
        config=config,
        overrides=override or (),
        brokers=brokers,
        base_port=base_port,
        ports_auto=ports == "auto",
        controller=controller,
        zookeeper=zookeeper,
        allow_remote_plaintext=allow_remote_plaintext,
        seal_key=seal_key,
    )
    with Page(data_dir if ui else None) as page:
        _start(settings, data_dir, page, detach=detach, json_output=json_output)


def _start(
    settings: ClusterSettings, data_dir: Path, page: Page, *, detach: bool, json_output: bool
) -> None:
    say_on_stderr(f"Starting {settings.brokers} brokers in {data_dir.resolve()} ...")
    if detach:
        from bridgehead.cluster.launch import launch

        _, document = launch(settings, detached=True)
        _show(document, data_dir, json_output=json_output, detached=True)
        return
    from bridgehead.cluster.supervisor import supervise

    def on_ready(document: dict[str, Any]) -> None:
        _show(document, data_dir, json_output=json_output, detached=False)
        page.start(say_on_stderr)

    supervise(settings, announce=say_on_stderr, on_ready=on_ready)
    say_on_stderr("Stopped.")


def _show(document: dict[str, Any], data_dir: Path, *, json_output: bool, detached: bool) -> None:
    if json_output:
        print_json(document)
        return
    say(
        f"Ready: {len(document['brokers'])} brokers, the controller is broker "
        f"{document['controller_id']}."
    )
    say(f"  bootstrap servers  {document['bootstrap_servers']}")
    say(f"  ZooKeeper          {document['zookeeper_connect']}")
    say(f"  evidence           {document['evidence_dir']}")
    option = "" if data_dir == DEFAULT_DATA_DIR else f" --data-dir {data_dir}"
    say(f"`bridgehead down{option}` stops it." if detached else "Ctrl-C stops it.")
