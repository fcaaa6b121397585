"""`bridgehead ui` and `bridgehead diagram`: look at a running cluster or at a recorded run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bridgehead.cli.options import DEFAULT_DATA_DIR, DataDirOption, say

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
    from bridgehead.ui.reading import find_run, recorded_run

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
        served = Served(recorded_run(find_run(folder)), str(folder))
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
