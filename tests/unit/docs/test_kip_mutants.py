"""Each mutant of tests/kips changes one place, and names rows of docs/kips.md that have tests.

The mutants must survive a restructuring: other names of local variables, another layout, no
comments, functions in another order. `make prove-kips` applies the mutants.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache

import pytest

from tests.kips.mutant import Mutant
from tests.kips.registry import MUTANTS, WITHOUT
from tools.kip_rows import ROOT, rows

BY_NUMBER = {row.number: row for row in rows()}
RENAMED = "_renamed"
each_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: "-".join(mutant.rows))


@each_mutant
def test_each_mutant_changes_one_place_in_its_module(mutant: Mutant) -> None:
    assert _mutated(mutant) != _source(mutant)
    assert mutant.rows
    for number in mutant.rows:
        assert BY_NUMBER[number].tests, f"{number} names no test"
        assert BY_NUMBER[number].is_implemented


def test_what_a_mutant_imports_exists() -> None:
    for mutant in MUTANTS:
        for new in _imports(_mutated(mutant)) - _imports(_source(mutant)):
            exec(new)


@each_mutant
def test_a_mutant_survives_the_renaming_of_local_variables(mutant: Mutant) -> None:
    renamed = _rename_locals(_source(mutant))
    assert mutant.applied_to(renamed).replace(RENAMED, "") == _mutated(mutant)


@each_mutant
def test_a_mutant_survives_the_moving_of_functions_within_a_module(mutant: Mutant) -> None:
    assert mutant.applied_to(_reorder(_source(mutant))) == _reorder(_mutated(mutant))


def test_a_row_has_a_mutant_or_a_reason() -> None:
    with_mutant = {number for mutant in MUTANTS for number in mutant.rows}
    without = Counter(number for gap in WITHOUT for number in gap.rows)
    assert not with_mutant & without.keys()
    assert set(without.values()) <= {1}
    implemented = {row.number for row in rows() if row.is_implemented}
    assert implemented <= with_mutant | without.keys()


def _source(mutant: Mutant) -> str:
    """Return the module without its comments and its layout."""
    source = mutant.file(ROOT).read_text(encoding="utf-8")
    assert RENAMED not in source
    return _without_layout(source)


def _imports(source: str) -> set[str]:
    es = (e for e in ast.walk(ast.parse(source)) if isinstance(e, (ast.Import, ast.ImportFrom)))
    return {ast.unparse(e) for e in es}


@cache
def _mutated(mutant: Mutant) -> str:
    return mutant.applied_to(_source(mutant))


@cache
def _without_layout(source: str) -> str:
    return ast.unparse(ast.parse(source))


@cache
def _rename_locals(source: str) -> str:
    """Rename the parameters and the variables of every function."""
    module = ast.parse(source)
    kept = _global_names(module) | {"self", "cls"}
    for function in _outermost_functions(module):
        _Renamer(_local_names(function) - kept).visit(function)
    return ast.unparse(module)


@cache
def _reorder(source: str) -> str:
    """Let the functions of each class and of the module change places."""
    module = ast.parse(source)
    classes = [node for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
    for body in (module.body, *(class_.body for class_ in classes)):
        at = [i for i, node in enumerate(body) if isinstance(node, _FUNCTIONS)]
        functions = [body[i] for i in at]
        for i, function in zip(at, reversed(functions), strict=True):
            body[i] = function
    return ast.unparse(module)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _global_names(module: ast.Module) -> set[str]:
    """Return the names of the module, of functions in functions, and of all imports."""
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    for node in module.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            names |= _stored(node)
    return names


def _outermost_functions(tree: ast.AST) -> list[ast.AST]:
    asts: list[ast.AST] = []
    for node in ast.iter_child_nodes(tree):
        asts += [node] if isinstance(node, _FUNCTIONS) else _outermost_functions(node)
    return asts


def _local_names(function: ast.AST) -> set[str]:
    names = _stored(function)
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
    return names


def _stored(tree: ast.AST) -> set[str]:
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}


class _Renamer(ast.NodeVisitor):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def generic_visit(self, node: ast.AST) -> None:
        for field in ("id", "arg", "name"):
            is_keyword = isinstance(node, ast.keyword)
            if not is_keyword and getattr(node, field, None) in self._names:
                setattr(node, field, getattr(node, field) + RENAMED)
        super().generic_visit(node)
