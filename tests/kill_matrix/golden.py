"""The golden histories that contain violations: each is a mutant of a correct history."""

from __future__ import annotations

from collections.abc import Mapping

from judge.properties import PROPERTY_SPECS
from tests import golden_histories


def violations_of_histories() -> Mapping[str, tuple[str, ...]]:
    """Map the name of each history with violations to the properties that it violates."""
    violated_by = {}
    for name in golden_histories.names():
        expect = golden_histories.load(name)["expect"]
        violated = tuple(spec.id for spec in PROPERTY_SPECS if len(expect.get(spec.id, ())) > 2)
        if violated:
            violated_by[name] = violated
    return violated_by


def example_of_each_property() -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Map each property's id to the history that violates it and the fewest other properties.

    A history is returned as its name and the properties that it violates.
    """
    histories = violations_of_histories().items()
    return {
        spec.id: min(
            ((name, violated) for name, violated in histories if spec.id in violated),
            key=lambda history: (len(history[1]), history[0]),
        )
        for spec in PROPERTY_SPECS
    }
