"""All mutants, and the rows that have none."""

from __future__ import annotations

from tests.kips import kip_4, kip_108, kip_117, kip_201, kip_590
from tests.kips.mutant import Without

MUTANTS = (
    *kip_590.MUTANTS,
    *kip_201.MUTANTS,
    *kip_108.MUTANTS,
    *kip_4.MUTANTS,
    *kip_117.MUTANTS,
)
WITHOUT: tuple[Without, ...] = (
    Without(
        ("4.87",),
        "the commands reach a broker only through the client, and no small fault can change that",
    ),
)
