"""What must hold, one file each. This is the registry; CONTRIBUTING says how to add one."""

from __future__ import annotations

from typing import Final

from chaos.properties import (
    acknowledged_is_kept,
    answer_tells_the_truth,
    at_most_once,
    every_write_is_fenced,
)
from chaos.verdicts import Property

PROPERTIES: Final[tuple[Property, ...]] = (
    every_write_is_fenced.PROPERTY,
    acknowledged_is_kept.PROPERTY,
    at_most_once.PROPERTY,
    answer_tells_the_truth.PROPERTY,
)
