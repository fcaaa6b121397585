"""Changes of a function's syntax tree, which the mutants of this folder make.

A change finds one part of a function by what the part mentions (see tests/kips/patterns.py), and
replaces or removes it:

    condition("Step.RELAY").never()
    call("Envelope").with_arguments(principal="b''")
    statement("create_internal").removed()

So a mutant still fits after its lines are moved or are written in other words, as long as the
names that it mentions stay: those of functions, attributes, constants and keyword arguments. The
names of local variables play no role.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tests.kips.patterns import Captured, Pattern, fill_statements
from tests.kips.place import Place, only, scope_of
from tests.kips.searches import (
    Found,
    Search,
    assigned_values,
    caught_exceptions,
    conditions,
    innermost,
    iterated_values,
    matching,
    matching_call,
    mentioning,
    operands,
    returned_values,
    statements,
)

_Where = str | Sequence[str]
_NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


class Change(Protocol):
    """A change of a function, a class, a constant or a module."""

    def apply(self, module: ast.Module, scope: ast.AST) -> None:
        """Change `scope`, which is a part of `module`.

        Raises:
            AnchorError: the scope does not have the part, or has several.
        """


def condition(*mentions: str, guarding: str = "", where: _Where = ()) -> Part:
    """Return the part that an `if`, a `while` or a comprehension tests.

    `guarding`: what its block, or the value if it is true, mentions.
    """
    title = f"condition {_shown(mentions, guarding)}"
    return Part(title, mentioning(conditions, mentions, guarding), where)


def operand(*mentions: str, where: _Where = ()) -> Part:
    """Return an operand of `and` or `or`."""
    return Part(f"operand {_shown(mentions)}", mentioning(operands, mentions), where)


def assigned(*mentions: str, where: _Where = ()) -> Part:
    """Return a value that is assigned to something."""
    return Part(f"assigned value {_shown(mentions)}", mentioning(assigned_values, mentions), where)


def returned(*mentions: str, where: _Where = ()) -> Part:
    """Return a value that the function returns."""
    return Part(f"returned value {_shown(mentions)}", mentioning(returned_values, mentions), where)


def iterated(*mentions: str, guarding: str = "", where: _Where = ()) -> Part:
    """Return what a `for` goes through. `guarding`: what its block mentions."""
    title = f"iterated value {_shown(mentions, guarding)}"
    return Part(title, mentioning(iterated_values, mentions, guarding), where)


def caught(*mentions: str, where: _Where = ()) -> Part:
    """Return the exceptions that an `except` names."""
    return Part(
        f"caught exception {_shown(mentions)}", mentioning(caught_exceptions, mentions), where
    )


def statement(*mentions: str, where: _Where = ()) -> Part:
    """Return a statement."""
    return Part(f"statement {_shown(mentions)}", mentioning(statements, mentions), where)


def expression(pattern: str, *, where: _Where = ()) -> Part:
    """Return an expression that matches this pattern."""
    return Part(f"expression {pattern}", matching(pattern, ast.expr), where)


def call(of: str, *, where: _Where = ()) -> Part:
    """Return a call: `of` is a function, or a pattern of the whole call."""
    return Part(f"call {of}", matching_call(of), where)


def argument(of: str, position: int, *, where: _Where = ()) -> Part:
    """Return a positional argument of a call."""

    def find(scope: ast.AST, before: Captured) -> Iterator[Found]:
        for node, captured in matching_call(of)(scope, before):
            assert isinstance(node, ast.Call)
            if position < len(node.args):
                yield node.args[position], captured

    return Part(f"argument {position} of {of}", find, where)


def entry(key: str) -> Part:
    """Return the value of a key in a literal dict."""

    def find(scope: ast.AST, captured: Captured) -> Iterator[Found]:
        for node in ast.walk(scope):
            if isinstance(node, ast.Dict):
                for dict_key, value in zip(node.keys, node.values, strict=True):
                    if dict_key is not None and Pattern(key).match(dict_key, captured) is not None:
                        yield value, captured

    return Part(f"entry {key}", find)


def value() -> Part:
    """Return the value of the named constant, or the default of the named field."""

    def find(scope: ast.AST, captured: Captured) -> Iterator[Found]:
        if isinstance(scope, (ast.Assign, ast.AnnAssign)) and scope.value is not None:
            yield scope.value, captured

    return Part("value", find)


def definition() -> Part:
    """Return the whole definition of what the mutant names."""
    return Part("definition", lambda scope, item: iter([(scope, item)]))


@dataclass(frozen=True)
class Part:
    """One part of a function: the innermost that `search` yields.

    `where`: a pattern that the function matches in one way only. What it captures is known to the
    patterns of the part and to the code of the change.
    """

    title: str
    search: Search
    where: _Where = ()

    def becomes(self, code: str) -> Change:
        """Replace it by this code, in which `$old` is the part itself."""

        def edit(place: Place) -> None:
            place.put(place.filled(code))

        return _PartChange(self, f"becomes {_in_a_line(code)}", edit)

    def never(self) -> Change:
        """Replace it by False."""
        return self.becomes("False")

    def always(self) -> Change:
        """Replace it by True."""
        return self.becomes("True")

    def negated(self) -> Change:
        """Replace it by its negation."""

        def edit(place: Place) -> None:
            place.put([negation(place.node)])

        return _PartChange(self, "negated", edit)

    def removed(self) -> Change:
        """Remove a statement, an operand, an entry, or a condition of a comprehension."""
        return _PartChange(self, "removed", Place.remove)

    def preceded_by(self, code: str) -> Change:
        """Insert statements before the statement."""

        def edit(place: Place) -> None:
            place.put([*place.filled(code), place.node])

        return _PartChange(self, f"preceded by {_in_a_line(code)}", edit)

    def followed_by(self, code: str) -> Change:
        """Insert statements after the statement."""

        def edit(place: Place) -> None:
            place.put([place.node, *place.filled(code)])

        return _PartChange(self, f"followed by {_in_a_line(code)}", edit)

    def with_arguments(self, **arguments: str) -> Change:
        """Give the call these keyword arguments; `$old` is what it gives today."""

        def edit(place: Place) -> None:
            for name, code in arguments.items():
                place.give(name, code)

        shown = ", ".join(f"{name}={code}" for name, code in arguments.items())
        return _PartChange(self, f"given {shown}", edit)

    def without(self, *names: str) -> Change:
        """Leave out these keyword arguments of the call."""

        def edit(place: Place) -> None:
            for name in names:
                place.call.keywords.remove(place.keyword(name))

        return _PartChange(self, f"without {', '.join(names)}", edit)

    def renamed(self, name: str) -> Change:
        """Call another function, or another method of the same object."""

        def edit(place: Place) -> None:
            function = place.call.func
            if isinstance(function, ast.Attribute):
                function.attr = name
            else:
                place.call.func = ast.Name(name, ast.Load())

        return _PartChange(self, f"calls {name}", edit)

    def find(self, module: ast.Module, scope: ast.AST) -> Place:
        """Return the only part in `scope`; raise AnchorError if it has none or several."""
        names: Captured = {}
        for text in [self.where] if isinstance(self.where, str) else self.where:
            inside = Pattern(text).inside(scope, names)
            names = only(f"pattern {text}", inside, _shown_captured)
        parts = innermost(list(self.search(scope, names)))
        node, captured = only(self.title, parts, lambda item: ast.unparse(item[0]))
        return Place(module, node, captured)


@dataclass(frozen=True)
class _PartChange:
    """Edits one part."""

    part: Part
    does: str
    edit: Callable[[Place], None]

    def apply(self, module: ast.Module, scope: ast.AST) -> None:
        self.edit(self.part.find(module, scope))

    def __str__(self) -> str:
        return f"{self.part.title} {self.does}"


@dataclass(frozen=True)
class _Both:
    changes: tuple[Change, Change]

    def apply(self, module: ast.Module, scope: ast.AST) -> None:
        for change in self.changes:
            change.apply(module, scope)

    def __str__(self) -> str:
        return " and ".join(map(str, self.changes))


@dataclass(frozen=True)
class _Swapped:
    names: tuple[str, str]

    def apply(self, module: ast.Module, scope: ast.AST) -> None:
        first, second = (Place(module, scope_of(scope, name), {}) for name in self.names)
        one, other = first.node, second.node
        marker = ast.Pass()
        first.put([marker])
        second.put([one])
        Place(module, marker, {}).put([other])

    def __str__(self) -> str:
        return f"{' and '.join(self.names)} change places"


@dataclass(frozen=True)
class _Added:
    code: str

    def apply(self, module: ast.Module, scope: ast.AST) -> None:
        assert scope is module
        module.body += fill_statements(self.code, {}, module)

    def __str__(self) -> str:
        return f"at the end: {_in_a_line(self.code)}"


def both(first: Change, second: Change) -> Change:
    """Make two changes."""
    return _Both((first, second))


def swapped(first: str, second: str) -> Change:
    """Let two fields of a class change places."""
    return _Swapped((first, second))


def added(code: str) -> Change:
    """Add statements at the end of the module."""
    return _Added(code)


def parts_of(change: Change) -> Iterator[Part]:
    """Yield the parts that a change of one or two parts edits."""
    if isinstance(change, _PartChange):
        yield change.part
    elif isinstance(change, _Both):
        for one in change.changes:
            yield from parts_of(one)


def negation(node: ast.AST) -> ast.expr:
    """Return the opposite of a condition."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _NEGATED:
        return ast.Compare(node.left, [_NEGATED[type(node.ops[0])]()], node.comparators)
    assert isinstance(node, ast.expr)
    return ast.UnaryOp(ast.Not(), node)


def _shown(mentions: Sequence[str], guarding: str = "") -> str:
    guarded = [f"of the block with {guarding}"] if guarding else []
    return " ".join([*mentions, *guarded])


def _in_a_line(code: str) -> str:
    return " ".join(code.split())


def _shown_captured(captured: Captured) -> str:
    return ", ".join(f"${name} is {ast.unparse(node)}" for name, node in captured.items())
