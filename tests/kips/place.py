"""Places in the syntax tree of a module, and how they are found by name and edited."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from tests.kips.patterns import AnchorError, Captured, fill, fill_statements

_T = TypeVar("_T")


class Place:
    """A part that was found in a module."""

    def __init__(self, module: ast.Module, node: ast.AST, captured: Captured) -> None:
        self.node = node
        self._module = module
        self._captured = captured
        self._parent, self._field = _parent(module, node)

    @property
    def call(self) -> ast.Call:
        """The part, which is a call."""
        assert isinstance(self.node, ast.Call)
        return self.node

    def filled(self, code: str) -> Sequence[ast.AST]:
        """Return the code as nodes of the part's kind."""
        captured = self._captured | {"old": self.node}
        if isinstance(self.node, ast.stmt):
            return fill_statements(code, captured, self._module)
        return [fill(code, captured, self._module)]

    def put(self, new: Sequence[ast.AST]) -> None:
        """Replace the part by these nodes."""
        old = getattr(self._parent, self._field)
        if not isinstance(old, list):
            (node,) = new
            setattr(self._parent, self._field, node)
            return
        at = next(i for i, child in enumerate(old) if child is self.node)
        old[at : at + 1] = new
        if not old and self._field == "body":
            old.append(ast.Pass())

    def remove(self) -> None:
        """Remove the part."""
        if isinstance(self._parent, ast.Dict):
            at = next(i for i, child in enumerate(self._parent.values) if child is self.node)
            del self._parent.keys[at]
        self.put([])
        if isinstance(self._parent, ast.BoolOp) and len(self._parent.values) == 1:
            Place(self._module, self._parent, {}).put(self._parent.values)

    def keyword(self, name: str) -> ast.keyword:
        """Return a keyword argument of the call."""
        keywords = [keyword for keyword in self.call.keywords if keyword.arg == name]
        return only(f"keyword {name} of {ast.unparse(self.call.func)}", keywords, ast.unparse)

    def give(self, name: str, code: str) -> None:
        """Replace or add a keyword argument of the call."""
        keywords = [keyword for keyword in self.call.keywords if keyword.arg == name]
        if keywords:
            captured = self._captured | {"old": keywords[0].value}
            keywords[0].value = fill(code, captured, self._module)
        else:
            new = fill(code, self._captured, self._module)
            self.call.keywords.append(ast.keyword(name, new))


def scope_of(tree: ast.AST, name: str) -> ast.AST:
    """Return what has this qualified name: a function, a class, a constant or a field.

    Without a name it is `tree`. Raises AnchorError if there is no such definition, or several.
    """
    for part in name.split(".") if name else ():
        definitions = [
            definition for definition in _definitions(tree) if _is_named(definition, part)
        ]
        tree = only(
            f"definition {part} of {name}",
            definitions,
            lambda definition: f"line {definition.lineno}",
        )
    return tree


def only(title: str, ts: Sequence[_T], shown: Callable[[_T], str]) -> _T:
    """Return the only one that was found. Raises AnchorError if there is none, or several."""
    if not ts:
        raise AnchorError(f"no {title}")
    if len(ts) > 1:
        raise AnchorError(f"{len(ts)} times {title}: {'; '.join(map(shown, ts))}")
    return ts[0]


def _definitions(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a scope, without those of the scopes in it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            yield from _definitions(node)


def _is_named(node: ast.stmt, name: str) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node.name == name
    targets: Iterable[ast.expr] = ()
    if isinstance(node, ast.AnnAssign):
        targets = (node.target,)
    elif isinstance(node, ast.Assign):
        targets = node.targets
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _parent(module: ast.Module, node: ast.AST) -> tuple[ast.AST, str]:
    for parent in ast.walk(module):
        for field, child in ast.iter_fields(parent):
            if child is node or (isinstance(child, list) and any(e is node for e in child)):
                return parent, field
    raise AssertionError(f"the module does not contain {ast.dump(node)}")
