"""The decisions of the group coordinator, as scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.data_plane.groups.group_scripts import SCRIPTS, run_script


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_the_coordinator_does_what_the_script_says(path: Path) -> None:
    assert path.read_text() == run_script(path)
