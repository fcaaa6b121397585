"""Every seeded bug: errors of nodes that prove that a check can fail.

Tests and `bridgehead chaos run --bugs` build nodes with them; production never imports this
package. To add a bug, add a `Bug` to the tuple `BUGS` of the module with its theme.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from chaos.bugs import (
    clients,
    commits,
    decisions,
    envelopes,
    exactly_once,
    fencing,
    metadata,
    migration,
    records,
    terms,
)
from chaos.bugs.bug import Bug, Composition
from node.assembly.parts import Parts, build_parts
from node.collaborators import PRODUCTION, Collaborators
from node.config import NodeConfig

BUGS: Final[tuple[Bug, ...]] = (
    *fencing.BUGS,
    *terms.BUGS,
    *commits.BUGS,
    *envelopes.BUGS,
    *exactly_once.BUGS,
    *decisions.BUGS,
    *metadata.BUGS,
    *clients.BUGS,
    *records.BUGS,
    *migration.BUGS,
)
NAMES: Final = frozenset(bug.name for bug in BUGS)


def faulty_parts(
    config: NodeConfig,
    data_dir: Path,
    bugs: frozenset[str],
    base: Collaborators = PRODUCTION,
    extend: Callable[[Collaborators], Collaborators] = lambda faulty: faulty,
) -> Parts:
    """Build the parts of a node with these seeded bugs. `base` has the constructors without bugs.

    `extend` changes the constructors further.
    """
    if unknown := bugs - NAMES:
        raise ValueError(f"unknown seeded bugs: {sorted(unknown)}")
    composition = Composition(config, base)
    for bug in BUGS:
        if bug.name in bugs:
            composition = bug.apply(composition)
    return build_parts(composition.config, data_dir, extend(composition.collaborators))
