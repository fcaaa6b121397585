"""Changes of a function's syntax tree, which the mutants of this folder make.

A change finds one part of a function by what the part mentions (see tests/kips/patterns.py), and
replaces or removes it:

    condition("Step.RELAY").never()
    call("Envelope").given(principal="b''")
    statement("create_internal").removed()

So a mutant still fits after its lines are moved or are written in other words, as long as the
names that it mentions stay: those of functions, attributes, constants and keyword arguments. The
names of local variables play no role.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tests.kips.patterns import AnchorError, Captured, Pattern, fill, fill_statements

_T = TypeVar("_T")
_Found = tuple[ast.AST, Captured]
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
    return Part(title, _mentioning(_conditions, mentions, guarding), where)


def operand(*mentions: str, where: _Where = ()) -> Part:
    """Return an operand of `and` or `or`."""
    return Part(f"operand {_shown(mentions)}", _mentioning(_operands, mentions), where)


def assigned(*mentions: str, where: _Where = ()) -> Part:
    """Return a value that is assigned to something."""
    return Part(f"assigned value {_shown(mentions)}", _mentioning(_assigned, mentions), where)


def returned(*mentions: str, where: _Where = ()) -> Part:
    """Return a value that the function returns."""
    return Part(f"returned value {_shown(mentions)}", _mentioning(_returned, mentions), where)


def iterated(*mentions: str, guarding: str = "", where: _Where = ()) -> Part:
    """Return what a `for` goes through. `guarding`: what its block mentions."""
    title = f"iterated value {_shown(mentions, guarding)}"
    return Part(title, _mentioning(_iterated, mentions, guarding), where)


def caught(*mentions: str, where: _Where = ()) -> Part:
    """Return the exceptions that an `except` names."""
    return Part(f"caught exception {_shown(mentions)}", _mentioning(_caught, mentions), where)


def statement(*mentions: str, where: _Where = ()) -> Part:
    """Return a statement."""
    return Part(f"statement {_shown(mentions)}", _mentioning(_statements, mentions), where)


def expression(pattern: str, *, where: _Where = ()) -> Part:
    """Return an expression that matches this pattern."""
    return Part(f"expression {pattern}", _matching(pattern, ast.expr), where)


def call(of: str, *, where: _Where = ()) -> Part:
    """Return a call: `of` is a function, or a pattern of the whole call."""
    return Part(f"call {of}", _matching(_call_pattern(of), ast.Call), where)


def argument(of: str, position: int, *, where: _Where = ()) -> Part:
    """Return a positional argument of a call."""

    def find(scope: ast.AST, known: Captured) -> Iterator[_Found]:
        for node, captured in _matching(_call_pattern(of), ast.Call)(scope, known):
            assert isinstance(node, ast.Call)
            if position < len(node.args):
                yield node.args[position], captured

    return Part(f"argument {position} of {of}", find, where)


def entry(key: str) -> Part:
    """Return the value of a key in a literal dict."""

    def find(scope: ast.AST, known: Captured) -> Iterator[_Found]:
        for node in ast.walk(scope):
            if isinstance(node, ast.Dict):
                for each, value in zip(node.keys, node.values, strict=True):
                    if each is not None and Pattern(key).match(each, known) is not None:
                        yield value, known

    return Part(f"entry {key}", find)


def value() -> Part:
    """Return the value of the named constant, or the default of the named field."""

    def find(scope: ast.AST, known: Captured) -> Iterator[_Found]:
        if isinstance(scope, (ast.Assign, ast.AnnAssign)) and scope.value is not None:
            yield scope.value, known

    return Part("value", find)


def definition() -> Part:
    """Return the whole definition of what the mutant names."""
    return Part("definition", lambda scope, known: iter([(scope, known)]))


@dataclass(frozen=True)
class Part:
    """One part of a function: the innermost that `find` yields.

    `where`: a pattern that the function matches in one way only. What it captures is known to the
    patterns of the part and to the code of the change.
    """

    title: str
    search: Callable[[ast.AST, Captured], Iterator[_Found]]
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
            place.put([_negation(place.node)])

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

    def given(self, **arguments: str) -> Change:
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
        known: Captured = {}
        for text in [self.where] if isinstance(self.where, str) else self.where:
            found = Pattern(text).inside(scope, known)
            known = _only(f"pattern {text}", found, _shown_captured)
        parts = _innermost(list(self.search(scope, known)))
        node, captured = _only(self.title, parts, lambda each: ast.unparse(each[0]))
        return Place(module, node, captured)


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
        at = next(i for i, each in enumerate(old) if each is self.node)
        old[at : at + 1] = new
        if not old and self._field == "body":
            old.append(ast.Pass())

    def remove(self) -> None:
        """Remove the part."""
        if isinstance(self._parent, ast.Dict):
            at = next(i for i, each in enumerate(self._parent.values) if each is self.node)
            del self._parent.keys[at]
        self.put([])
        if isinstance(self._parent, ast.BoolOp) and len(self._parent.values) == 1:
            Place(self._module, self._parent, {}).put(self._parent.values)

    def keyword(self, name: str) -> ast.keyword:
        """Return a keyword argument of the call."""
        found = [each for each in self.call.keywords if each.arg == name]
        return _only(f"keyword {name} of {ast.unparse(self.call.func)}", found, ast.unparse)

    def give(self, name: str, code: str) -> None:
        """Replace or add a keyword argument of the call."""
        found = [each for each in self.call.keywords if each.arg == name]
        if found:
            captured = self._captured | {"old": found[0].value}
            found[0].value = fill(code, captured, self._module)
        else:
            new = fill(code, self._captured, self._module)
            self.call.keywords.append(ast.keyword(name, new))


@dataclass(frozen=True)
class _PartChange:
    """Edits one part."""

    part: Part
    does: str
    edit: Callable[[Place], None]

    def apply(self, module: ast.Module, scope: ast.AST) -> None:
        """See Change."""
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


def scope_of(tree: ast.AST, name: str) -> ast.AST:
    """Return what has this qualified name: a function, a class, a constant or a field.

    Without a name it is `tree`. Raises AnchorError if there is no such definition, or several.
    """
    for part in name.split(".") if name else ():
        found = [each for each in _definitions(tree) if _is_named(each, part)]
        tree = _only(f"definition {part} of {name}", found, lambda each: f"line {each.lineno}")
    return tree


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
    return any(isinstance(each, ast.Name) and each.id == name for each in targets)


_Block = Sequence[ast.AST]
_Candidates = Callable[[ast.AST], Iterator[tuple[ast.AST, _Block]]]


def _conditions(scope: ast.AST) -> Iterator[tuple[ast.AST, _Block]]:
    for node in ast.walk(scope):
        if isinstance(node, (ast.If, ast.While)):
            yield node.test, node.body
        elif isinstance(node, ast.IfExp):
            yield node.test, [node.body]
        elif isinstance(node, ast.comprehension):
            yield from ((each, ()) for each in node.ifs)


def _operands(scope: ast.AST) -> Iterator[tuple[ast.AST, _Block]]:
    for node in ast.walk(scope):
        if isinstance(node, ast.BoolOp):
            yield from ((each, ()) for each in node.values)


def _assigned(scope: ast.AST) -> Iterator[tuple[ast.AST, _Block]]:
    for node in ast.walk(scope):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            yield node.value, ()


def _returned(scope: ast.AST) -> Iterator[tuple[ast.AST, _Block]]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value, ()


def _iterated(scope: ast.AST) -> Iterator[tuple[ast.AST, _Block]]:
    for node in ast.walk(scope):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            yield node.iter, node.body
        elif isinstance(node, ast.comprehension):
            yield node.iter, ()


def _caught(scope: ast.AST) -> Iterator[tuple[ast.AST, _Block]]:
    for node in ast.walk(scope):
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            yield node.type, ()


def _statements(scope: ast.AST) -> Iterator[tuple[ast.AST, _Block]]:
    for node in ast.walk(scope):
        if isinstance(node, ast.stmt) and node is not scope:
            yield node, ()


def _mentioning(
    candidates: _Candidates, mentions: Sequence[str], guarding: str = ""
) -> Callable[[ast.AST, Captured], Iterator[_Found]]:
    """Return a search for the candidates that mention all of these patterns."""
    patterns = [Pattern(text) for text in mentions]

    def find(scope: ast.AST, known: Captured) -> Iterator[_Found]:
        for node, block in candidates(scope):
            if guarding and not any(Pattern(guarding).inside(each, known) for each in block):
                continue
            ways = [known]
            for pattern in patterns:
                ways = [found for way in ways for found in pattern.inside(node, way)]
            for captured in ways:
                yield node, captured

    return find


def _matching(text: str, kind: type[ast.AST]) -> Callable[[ast.AST, Captured], Iterator[_Found]]:
    """Return a search for the nodes that match this pattern."""
    pattern = Pattern(text)

    def find(scope: ast.AST, known: Captured) -> Iterator[_Found]:
        for node in ast.walk(scope):
            if isinstance(node, kind):
                captured = pattern.match(node, known)
                if captured is not None:
                    yield node, captured

    return find


def _call_pattern(of: str) -> str:
    return of if of.endswith(")") else f"{of}(...)"


def _innermost(found: Sequence[_Found]) -> list[_Found]:
    """Leave out the nodes that contain another of the nodes."""
    nodes = {id(node) for node, _ in found}
    return [
        (node, captured)
        for node, captured in found
        if not any(id(each) in nodes for each in ast.walk(node) if each is not node)
    ]


def _negation(node: ast.AST) -> ast.expr:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _NEGATED:
        return ast.Compare(node.left, [_NEGATED[type(node.ops[0])]()], node.comparators)
    assert isinstance(node, ast.expr)
    return ast.UnaryOp(ast.Not(), node)


def _parent(module: ast.Module, node: ast.AST) -> tuple[ast.AST, str]:
    for parent in ast.walk(module):
        for field, child in ast.iter_fields(parent):
            if child is node or (isinstance(child, list) and any(e is node for e in child)):
                return parent, field
    raise AssertionError(f"the module does not contain {ast.dump(node)}")


def _only(title: str, found: Sequence[_T], shown: Callable[[_T], str]) -> _T:
    if not found:
        raise AnchorError(f"no {title}")
    if len(found) > 1:
        raise AnchorError(f"{len(found)} times {title}: {'; '.join(map(shown, found))}")
    return found[0]


def _shown(mentions: Sequence[str], guarding: str = "") -> str:
    guarded = [f"of the block with {guarding}"] if guarding else []
    return " ".join([*mentions, *guarded])


def _in_a_line(code: str) -> str:
    return " ".join(code.split())


def _shown_captured(captured: Captured) -> str:
    return ", ".join(f"${name} is {ast.unparse(node)}" for name, node in captured.items())
