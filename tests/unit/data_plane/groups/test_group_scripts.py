"""The decisions of the group coordinator, as scripts."""

from __future__ import annotations

import pytest

from tests.unit.data_plane.groups.group_scripts import run_script, scripts


@pytest.mark.parametrize(("name", "text"), scripts().items(), ids=scripts())
def test_the_coordinator_does_what_the_script_says(name: str, text: str) -> None:
    assert text == run_script(text), name
