"""A run that does not pass leaves a page, which the results name."""

from __future__ import annotations

import json
from pathlib import Path

from chaos.__main__ import main
from chaos.reproduction import of_scenarios
from chaos.scenario import SIMULATED


def test_a_run_with_a_bug_leaves_a_page_and_one_that_passes_does_not(tmp_path: Path) -> None:
    wanted = next(run for run in of_scenarios() if run.tier == SIMULATED)
    arguments = ["run", wanted.scenario, "--tier", SIMULATED, "--out", str(tmp_path)]
    assert main([*arguments, "--bugs", ",".join(wanted.bugs)]) == 1
    (run,) = json.loads((tmp_path / "results.json").read_text())["runs"]
    page = Path(run["page"])
    assert page.parent == Path(run["folder"])
    assert '<script type="module">' in page.read_text(encoding="utf-8")
    assert f"page: {page}" in (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert main(arguments) == 0
    (run,) = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert run["page"] == ""
