"""The registry lists every module of a property, and ids and names are written once."""

from __future__ import annotations

from pathlib import Path

import judge.properties
from judge.properties import PROPERTIES, PROPERTY_SPECS


def test_every_module_is_a_property_named_like_its_file() -> None:
    (folder,) = judge.properties.__path__
    files = {path.stem for path in Path(folder).glob("*.py")} - {"__init__"}
    assert files == {spec.name for spec in PROPERTY_SPECS}
    for property_ in PROPERTIES:
        assert property_.SPEC.name == str(property_.__name__).rpartition(".")[2]  # type: ignore[attr-defined]
    assert len({spec.id for spec in PROPERTY_SPECS}) == len(PROPERTIES)
