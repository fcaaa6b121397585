"""Searches for the parts of a function that mention something (see tests/kips/patterns.py)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from tests.kips.patterns import Captured, Pattern

Found = tuple[ast.AST, Captured]
Search = Callable[[ast.AST, Captured], Iterator[Found]]
_Block = Sequence[ast.AST]
_Candidates = Callable[[ast.AST], Iterator[tuple[ast.AST, _Block]]]


def conditions(scope: ast.AST) -> Iterator[tuple[ast.AST, _Block]]:
    """Yield what is tested, with the block that it guards."""
    for node in ast.walk(scope):
        if isinstance(node, (ast.If, ast.While)):
            yield node.test, node.body
        elif isinstance(node, ast.IfExp):
            yield node.test, [node.body]
        elif isinstance(node, ast.comprehension):
            yield from ((condition, ()) for condition in node.ifs)


def operands(scope: ast.AST) -> Iterator[tuple[ast.AST, _Block]]:
    """Yield the operands of `and` and `or`."""
    for node in ast.walk(scope):
        if isinstance(node, ast.BoolOp):
            yield from ((operand, ()) for operand in node.values)


def assigned_values(scope: ast.AST) -> Iterator[tuple[ast.AST, _Block]]:
    """Yield the assigned values."""
    for node in ast.walk(scope):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            yield node.value, ()


def returned_values(scope: ast.AST) -> Iterator[tuple[ast.AST, _Block]]:
    """Yield the returned values."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value, ()


def iterated_values(scope: ast.AST) -> Iterator[tuple[ast.AST, _Block]]:
    """Yield what is gone through, with the block."""
    for node in ast.walk(scope):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            yield node.iter, node.body
        elif isinstance(node, ast.comprehension):
            yield node.iter, ()


def caught_exceptions(scope: ast.AST) -> Iterator[tuple[ast.AST, _Block]]:
    """Yield what the `except` clauses name."""
    for node in ast.walk(scope):
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            yield node.type, ()


def statements(scope: ast.AST) -> Iterator[tuple[ast.AST, _Block]]:
    """Yield the statements."""
    for node in ast.walk(scope):
        if isinstance(node, ast.stmt) and node is not scope:
            yield node, ()


def mentioning(candidates: _Candidates, mentions: Sequence[str], guarding: str = "") -> Search:
    """Return a search for the candidates that mention all of these patterns."""
    patterns = [Pattern(text) for text in mentions]

    def find(scope: ast.AST, before: Captured) -> Iterator[Found]:
        for node, block in candidates(scope):
            if guarding and not any(
                Pattern(guarding).inside(statement, before) for statement in block
            ):
                continue
            routes = [before]
            for pattern in patterns:
                routes = [
                    way_inside for route in routes for way_inside in pattern.inside(node, route)
                ]
            for captured in routes:
                yield node, captured

    return find


def matching(text: str, kind: type[ast.AST]) -> Search:
    """Return a search for the nodes that match this pattern."""
    pattern = Pattern(text)

    def find(scope: ast.AST, before: Captured) -> Iterator[Found]:
        for node in ast.walk(scope):
            if isinstance(node, kind):
                captured = pattern.match(node, before)
                if captured is not None:
                    yield node, captured

    return find


def matching_call(of: str) -> Search:
    """Return a search for a call: `of` is a function, or a pattern of the whole call."""
    return matching(of if of.endswith(")") else f"{of}(...)", ast.Call)


def innermost(founds: Sequence[Found]) -> list[Found]:
    """Leave out the nodes that contain another of the nodes."""
    nodes = {id(node) for node, _ in founds}
    return [
        (node, captured)
        for node, captured in founds
        if not any(id(path) in nodes for path in ast.walk(node) if path is not node)
    ]
