"""Patterns that find a part of a syntax tree, and code that takes its place.

A pattern is Python source that does not depend on layout or on the names of local variables:

    authorize               a name, or an attribute of any value: `authorize`, `context.authorize`
    ErrorCode.NONE          this expression
    authorize("DESCRIBE")   a call of a function or method `authorize` with exactly this argument
    authorize("ALTER", ...) a call whose arguments begin with this one
    Decided(..., late=...)  a call with any arguments, one of which is the keyword `late`
    $topic.name             the attribute `name` of any expression, which is called `$topic`
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
import textwrap
from collections.abc import Mapping
from typing import Any, Final

Captured = dict[str, ast.AST]

_PREFIX: Final = "_captured_"
_NOT_COMPARED: Final = {"ctx", "kind", "type_comment"}


class AnchorError(Exception):
    """A mutant does not name one part of the product."""


class Pattern:
    """Matches nodes of a syntax tree. See the module."""

    def __init__(self, text: str) -> None:
        self._node = ast.parse(_without_dollars(text), mode="eval").body

    def match(self, node: ast.AST, captured: Mapping[str, ast.AST]) -> Captured | None:
        """Return `captured` and what this pattern captures, or None if the node is another."""
        match = dict(captured)
        if _named_last(self._node, node):
            return match
        return match if _matches(self._node, node, match) else None

    def inside(self, node: ast.AST, captured: Mapping[str, ast.AST]) -> list[Captured]:
        """Return what each match in this node or its descendants captures, without duplicates."""
        distinct: dict[str, Captured] = {}
        for path in ast.walk(node):
            match = self.match(path, captured)
            if match is not None:
                key = " ".join(f"{name}={ast.unparse(value)}" for name, value in match.items())
                distinct.setdefault(key, match)
        return list(distinct.values())


def fill(code: str, captured: Mapping[str, ast.AST], module: ast.Module) -> ast.expr:
    """Return the expression of this source, in which `$name` stands for what was captured."""
    tree = ast.parse(_without_dollars(code), mode="eval")
    _check_names(tree, code, captured, module)
    filled: ast.expr = _Fill(captured).visit(tree).body
    return filled


def fill_statements(
    code: str, captured: Mapping[str, ast.AST], module: ast.Module
) -> list[ast.stmt]:
    """Return the statements of this source, in which `$name` stands for what was captured."""
    tree = ast.parse(_without_dollars(textwrap.dedent(code)))
    _check_names(tree, code, captured, module)
    filled: list[ast.stmt] = _Fill(captured).visit(tree).body
    return filled


def _without_dollars(text: str) -> str:
    return re.sub(r"\$(\w+)", rf"{_PREFIX}\1", text)


def _captured_name(node: Any) -> str | None:
    if isinstance(node, ast.Name) and node.id.startswith(_PREFIX):
        return node.id.removeprefix(_PREFIX)
    return None


def _is_any(node: Any) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _named_last(wanted: ast.expr, node: ast.AST) -> bool:
    """True if the pattern is only a name, and the node is an attribute with this name."""
    if not isinstance(wanted, ast.Name) or _captured_name(wanted):
        return False
    return isinstance(node, ast.Attribute) and node.attr == wanted.id


def _matches(wanted: Any, node: Any, captured: Captured) -> bool:
    if name := _captured_name(wanted):
        if not isinstance(node, ast.expr):
            return False
        return ast.unparse(captured.setdefault(name, node)) == ast.unparse(node)
    if _is_any(wanted):
        return isinstance(node, ast.expr)
    if type(wanted) is not type(node):
        return False
    if isinstance(wanted, ast.Call):
        return _matches_call(wanted, node, captured)
    if isinstance(wanted, ast.AST):
        fields = [name for name in wanted._fields if name not in _NOT_COMPARED]
        return all(_matches(getattr(wanted, f), getattr(node, f), captured) for f in fields)
    if isinstance(wanted, list):
        return _all_match(wanted, node, captured)
    return bool(wanted == node)


def _all_match(wanted: list[Any], nodes: list[Any], captured: Captured) -> bool:
    if len(wanted) != len(nodes):
        return False
    return all(_matches(*pair, captured) for pair in zip(wanted, nodes, strict=True))


def _matches_call(wanted: ast.Call, node: ast.Call, captured: Captured) -> bool:
    is_called = _named_last(wanted.func, node.func) or _matches(wanted.func, node.func, captured)
    if not is_called:
        return False
    gap = next((at for at, argument in enumerate(wanted.args) if _is_any(argument)), None)
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    if gap is None:
        first, last = wanted.args, list[ast.expr]()
        if len(node.args) > len(first) or len(keywords) > len(wanted.keywords):
            return False
    else:
        first, last = wanted.args[:gap], wanted.args[gap + 1 :]
    if len(node.args) < len(first) + len(last):
        return False
    return (
        _all_match(first, node.args[: len(first)], captured)
        and _all_match(last, node.args[len(node.args) - len(last) :], captured)
        and all(
            _matches(keyword.value, keywords.get(keyword.arg), captured)
            for keyword in wanted.keywords
        )
    )


class _Fill(ast.NodeTransformer):
    """Puts what was captured in place of its name."""

    def __init__(self, captured: Mapping[str, ast.AST]) -> None:
        self._captured = captured

    def visit_Name(self, node: ast.Name) -> ast.AST:
        name = _captured_name(node)
        return copy.deepcopy(self._captured[name]) if name else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        # A statement was captured: the name stands alone.
        return node.value if isinstance(node.value, ast.stmt) else node


def _check_names(
    tree: ast.AST, code: str, captured: Mapping[str, ast.AST], module: ast.Module
) -> None:
    """Refuse the name of a local variable: after a renaming, its use would be another fault."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    unknown = {n for n in names if n.startswith(_PREFIX)} - {_PREFIX + n for n in captured}
    if unknown:
        shown = ", ".join(f"${name.removeprefix(_PREFIX)}" for name in sorted(unknown))
        raise AnchorError(f"no pattern captures {shown} of {code!r}")
    stored = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    defined = stored | arguments | set(dir(builtins)) | {"self"} | _imported(tree)
    defined |= _defined(module) | _imported(module)
    local = {name for name in names - defined if not name.startswith(_PREFIX)}
    if local:
        raise AnchorError(
            f"{code!r} names {', '.join(sorted(local))}, which the module does not define: "
            "capture a local variable with a pattern"
        )


def _imported(tree: ast.AST) -> set[str]:
    """Return the names of all imports, also of those in functions."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.alias))
    return {(node.asname or node.name).partition(".")[0] for node in nodes}


def _defined(tree: ast.AST) -> set[str]:
    """Return the names that definitions and assignments outside functions define."""
    names: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        else:
            names |= _defined(node)
    return names
