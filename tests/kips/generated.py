"""Mutants that are generated for the statements of the code that implement a row.

A hand-written mutant of a row changes a part of a statement, so this statement implements the row.
Here every part of the statement is changed in turn: a constant gets another value; an argument or a
returned value becomes the empty value of its type (0, False, "", None, {}); a condition is
inverted, always true or never true; an operand of `and` or `or`, or an entry of a dict, is left
out; a comparison moves its boundary; a simple statement is skipped. A test of one of the rows that
share the statement must fail.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.kips.changes import negation, parts_of
from tests.kips.mutant import Mutant
from tests.kips.place import Place, scope_of

Edit = Callable[[Place], None]
# Statements that have no effect that a test could see.
_SILENT: Final = ("log", "_log", "logger")
_BOUNDARIES: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_NEVER_EMPTIED: Final = ("[]", "{}", "()", "__doc__")  # empty already, or no behaviour
_LINES_MAX: Final = 12  # of a compound statement, whose body is mutated too


@dataclass(frozen=True)
class Generated:
    """The change number `at` of the statement that is number `statement` of a scope."""

    statement: int
    at: int
    title: str

    def apply(self, module: ast.Module, scope: ast.AST) -> None:
        """Change the scope."""
        node, _, edit = list(_edits(_statements(scope)[self.statement]))[self.at]
        edit(Place(module, node, {}))

    def __str__(self) -> str:
        return self.title


def generated(mutants: Iterable[Mutant], root: Path) -> list[Mutant]:
    """Return the generated mutants for the statements that these mutants change."""
    rows: dict[tuple[str, str, int], dict[str, None]] = {}
    for mutant in mutants:
        for statement in _changed_statements(mutant, root):
            rows.setdefault((mutant.module, mutant.name, statement), {}).update(
                dict.fromkeys(mutant.rows)
            )
    result: list[Mutant] = []
    for (module, name, statement), numbers in sorted(rows.items()):
        original = Mutant((), module, name, Generated(statement, 0, ""))
        source = original.file(root).read_text(encoding="utf-8")
        scope = scope_of(_parsed(source), name)
        for at, (_, title, _) in enumerate(_edits(_statements(scope)[statement])):
            change = Generated(statement, at, title)
            mutant = Mutant(tuple(numbers), module, name, change, needs_every_row=False)
            if mutant.applied_to(source) != _unparsed(source):
                result.append(mutant)
    return result


def _changed_statements(mutant: Mutant, root: Path) -> Iterator[int]:
    """Yield the numbers of the statements that a mutant changes."""
    if not mutant.name:
        return
    module = ast.parse(mutant.file(root).read_text(encoding="utf-8"))
    scope = scope_of(module, mutant.name)
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    statements = _statements(scope)
    for part in parts_of(mutant.change):
        changed = part.find(module, scope).node
        around = [
            (len(list(ast.walk(statement))), number)
            for number, statement in enumerate(statements)
            if any(node is changed for node in ast.walk(statement))
        ]
        if around:
            yield min(around)[1]


@cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


@cache
def _unparsed(source: str) -> str:
    return ast.unparse(ast.parse(source))


def _statements(scope: ast.AST) -> list[ast.stmt]:
    """Return the statements of a function, in the order of the source."""
    return [node for node in ast.walk(scope) if isinstance(node, ast.stmt) and node is not scope]


def _edits(statement: ast.stmt) -> Iterator[tuple[ast.AST, str, Edit]]:
    """Yield the parts of a statement, what is done to each, and how."""
    whole: list[ast.AST] = [statement]
    if isinstance(statement, (ast.If, ast.For, ast.While, ast.AsyncFor)):
        whole = _parts_of_compound(statement)
    for root in whole:
        left_out = set(_left_out(root))
        for node in ast.walk(root):
            if id(node) not in left_out:
                yield from _edits_of(node, is_statement=isinstance(node, ast.stmt))


def _left_out(root: ast.AST) -> Iterator[int]:
    """Yield what is not worth a mutant: keys, which every test needs, and the words of messages.

    No row states the words of a log line. Whether there is a line, a written mutant tries.
    """
    for node in ast.walk(root):
        if isinstance(node, ast.Subscript):
            yield id(node.slice)
        elif isinstance(node, ast.JoinedStr):
            yield from map(id, node.values)
        elif isinstance(node, ast.Call) and _is_log(node):
            yield from map(id, node.args[:1])


def _parts_of_compound(statement: ast.stmt) -> list[ast.AST]:
    """Return a short statement with its body; of a long one only the head."""
    if (statement.end_lineno or 0) - statement.lineno < _LINES_MAX:
        return [statement]
    if isinstance(statement, (ast.If, ast.While)):
        return [statement.test]
    assert isinstance(statement, (ast.For, ast.AsyncFor))
    return [statement.iter]


def _edits_of(node: ast.AST, *, is_statement: bool) -> Iterator[tuple[ast.AST, str, Edit]]:
    if is_statement:
        yield from _edits_of_statement(node)
    elif isinstance(node, ast.Constant):
        yield from _edits_of_constant(node)
    elif isinstance(node, ast.Call):
        yield from _edits_of_call(node)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield value, f"without the operand {_shown(value)}", Place.remove
    elif isinstance(node, ast.Compare):
        yield from _edits_of_comparison(node)
    elif isinstance(node, ast.IfExp):
        yield from _edits_of_condition(node.test)
    elif isinstance(node, ast.comprehension):
        for test in node.ifs:
            yield from _edits_of_condition(test)
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield value, f"without the entry of {_shown(value)}", Place.remove


def _edits_of_statement(node: ast.AST) -> Iterator[tuple[ast.AST, str, Edit]]:
    if isinstance(node, (ast.If, ast.While)):
        yield from _edits_of_condition(node.test)
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await))
    if (is_call and not _is_silent(node)) or isinstance(node, (ast.AugAssign, ast.Raise)):
        yield node, f"without {_shown(node)}", Place.remove
    skipped = (ast.Constant, ast.Call, ast.Await, type(None))
    if isinstance(node, ast.Return) and not isinstance(node.value, skipped):
        assert node.value is not None
        yield from _emptied(node.value)


def _edits_of_call(node: ast.Call) -> Iterator[tuple[ast.AST, str, Edit]]:
    """Empty the keyword arguments; of a call of a class, also the positional ones."""
    values = [keyword.value for keyword in node.keywords if keyword.arg is not None]
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    if name[:1].isupper():
        values += node.args
    for value in values:
        if not isinstance(value, (ast.Constant, ast.Lambda, ast.Starred)):
            yield from _emptied(value)


def _emptied(value: ast.expr) -> Iterator[tuple[ast.AST, str, Edit]]:
    if ast.unparse(value) in _NEVER_EMPTIED:
        return
    kind = ast.Call(ast.Name("type", ast.Load()), [value], [])
    yield value, f"{_shown(value)} is empty", _puts(ast.Call(kind, [], []))


def _edits_of_condition(test: ast.expr) -> Iterator[tuple[ast.AST, str, Edit]]:
    shown = _shown(test)
    yield test, f"condition {shown} inverted", lambda place: place.put([negation(place.node)])
    for value in (True, False):
        constant = ast.Constant(value)
        yield test, f"condition {shown} is {value}", _puts(constant)


def _edits_of_constant(node: ast.Constant) -> Iterator[tuple[ast.AST, str, Edit]]:
    value = node.value
    other: bool | float | str | None = None
    if isinstance(value, bool):
        other = not value
    elif isinstance(value, (int, float)):
        other = value + 1
    elif isinstance(value, str):
        other = f"{value}x"
    if other is not None:
        yield node, f"{value!r} becomes {other!r}", _puts(ast.Constant(other))


def _edits_of_comparison(node: ast.Compare) -> Iterator[tuple[ast.AST, str, Edit]]:
    boundary = _BOUNDARIES.get(type(node.ops[0]))
    if boundary is None:
        return
    moved = copy.deepcopy(node)
    moved.ops[0] = boundary()
    yield node, f"{_shown(node)} becomes {_shown(moved)}", _puts(moved)


def _puts(new: ast.AST) -> Edit:
    return lambda place: place.put([copy.deepcopy(new)])


def _is_silent(node: ast.AST) -> bool:
    call = next((part for part in ast.walk(node) if isinstance(part, ast.Call)), None)
    return call is not None and _is_log(call)


def _is_log(call: ast.Call) -> bool:
    return (
        isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in _SILENT
    )


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
