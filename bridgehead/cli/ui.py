"""`bridgehead ui` and `bridgehead diagram`: look at a running cluster or at a recorded run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bridgehead.cli.options import DEFAULT_DATA_DIR, DataDirOption, say, say_on_stderr

if TYPE_CHECKING:
    from bridgehead.ui.reading import RunReader

RunArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[RUN]",
        help="A cluster's folder or a run's; by default the running cluster of --data-dir.",
        show_default=False,
    ),
]


def ui(
    run: RunArgument = None,
    *,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write one page that needs no server, and end."),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show no buttons that break the cluster.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="The page's port; 0: a free one.")
    ] = 0,
) -> None:
    """Show a cluster or a recorded run in a browser.

    Prints the page's address. Ctrl-C ends the page, not the cluster.
    """
    from bridgehead.cluster.data_directory import DataDirectory
    from bridgehead.cluster.errors import ClusterError
    from bridgehead.ui.reading import find_run

    folder = run or data_dir
    is_running = DataDirectory(folder).is_claimed()
    if run is None and not is_running:
        raise ClusterError(
            f"No cluster is running in {folder}: start one with `bridgehead up`, or name a "
            "recorded run: `bridgehead ui RUN`."
        )
    if export is not None:
        from bridgehead.ui.export import write_page

        write_page(folder, export)
        say(f"Wrote {export}.")
        return
    try:
        from bridgehead.ui.server import Served, open_run, serve
    except ModuleNotFoundError as error:
        raise ClusterError(
            f"The package {error.name} is missing: pip install 'bridgehead[ui]' installs it."
        ) from None
    if is_running:
        served = Served(open_run(find_run(folder)), str(folder), folder, read_only)
    else:
        served = Served(_read(find_run(folder)), str(folder))
    serve(served, port, lambda address: say(f"Open {address}"))


def diagram(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A cluster's folder, or the folder of a run.")
    ],
    *,
    request: Annotated[
        str, typer.Option(metavar="ID", help="The request's id, as in the events and on the page.")
    ],
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Print the text of a Mermaid diagram, not an SVG.")
    ] = False,
) -> None:
    """Print the sequence diagram of one request."""
    from bridgehead.ui.diagram import as_mermaid, as_svg, diagram_of
    from bridgehead.ui.reading import find_run, read_run

    reader = read_run(find_run(run))
    try:
        drawn = diagram_of(reader, request)
    finally:
        reader.close()
    say((as_mermaid if mermaid else as_svg)(drawn).rstrip("\n"))


class Page:
    """The page of a cluster that this process runs, in a process of its own."""

    def __init__(self, data_dir: Path | None) -> None:
        """`data_dir`: the cluster's folder; None: there is no page."""
        self._data_dir = data_dir
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, announce: Callable[[str], None]) -> None:
        """Start to serve, and announce the address."""
        from bridgehead.application import module_command, module_environment

        if self._data_dir is None:
            return
        self._process = subprocess.Popen(
            module_command("bridgehead", "ui", "--data-dir", str(self._data_dir.resolve())),
            env=module_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C first stops the cluster; the page shows it.
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode().strip()
        announce(line or "The page cannot be served: the line above says why.")

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()


def _read(run: Path) -> RunReader:
    from bridgehead.ui.reading import read_run

    say_on_stderr(f"Reading {run} ...")
    return read_run(run)
