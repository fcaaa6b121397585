"""The command `pipeline trends`: a page on the figures of many runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pipeline.folders import OutputError
from pipeline.report.figures import FIGURES, Figures, figures_from_json
from pipeline.report.trends import trends


def write_trends(folders: Iterable[Path], page: Path) -> int:
    """Write the page on the runs of these output folders; return the number of runs.

    Raises:
        OutputError: a folder has no figures, or the page cannot be written.
    """
    runs: dict[str, Figures] = {}
    for folder in folders:
        path = folder / FIGURES
        try:
            stored = figures_from_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise OutputError(
                f"{folder} has no {FIGURES}: name a folder that `pipeline run --out` wrote."
            ) from None
        except (OSError, ValueError) as error:
            raise OutputError(f"{path} cannot be read: {error}.") from error
        runs.update((run.run, run) for run in stored)
    in_order = sorted(runs.values(), key=lambda run: (run.started_ms, run.run))
    try:
        page.write_text(trends(in_order), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{page} cannot be written ({error.strerror}).") from error
    return len(in_order)
