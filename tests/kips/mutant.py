"""A small fault in the product that makes the statements of some rows of docs/kips.md false."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

from tests.kips.changes import Change
from tests.kips.place import scope_of


class Mutant(NamedTuple):
    """If `change` is made in `name` of `module`, a test of each row must fail.

    Without `needs_every_row`, a test of one of the rows is enough.

    `name` is the qualified name of a function, a class, a constant or a field, such as
    `Dispatcher._relay`. If it is empty, the change is one of the module.
    """

    rows: tuple[str, ...]
    module: str
    name: str
    change: Change
    needs_every_row: bool = True

    def __str__(self) -> str:
        return f"{self.module}:{self.name}: {self.change}"

    def file(self, root: Path) -> Path:
        """Return the module's file below this folder."""
        path = root.joinpath(*self.module.split("."))
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    def applied_to(self, source: str) -> str:
        """Return the source of the module with the change, without comments.

        Raises:
            AnchorError: the source does not have what the mutant names, or has it several times.
        """
        module = ast.parse(source)
        self.change.apply(module, scope_of(module, self.name))
        return ast.unparse(ast.fix_missing_locations(module))


class Without(NamedTuple):
    """Rows without a mutant, and why."""

    rows: tuple[str, ...]
    reason: str
