"""Finds the permissions and error codes that the code of an API refers to.

Every name that the classes of an API use is followed, so the result can contain too much.
Attributes are not followed, so the result lacks what only the methods of collaborators refer to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from bridgehead.kafka_wire.api_key import ApiKey

ROOT: Final = Path(__file__).parents[1]
_FOLLOWED: Final = ("controller", "broker_proxy", "cluster_model")
_FOLDERS: Final = ("controller/apis", "broker_proxy/apis")
# Every API uses these modules: following them would reach everything.
_FRAMES: Final = ("controller.apis.base", "broker_proxy.apis.base", "broker_proxy.client_request")
Place = tuple[str, str]  # module, name


class _Module:
    """The names that a module defines, and those that it imports from our modules."""

    def __init__(self, name: str) -> None:
        path = ROOT / (name.replace(".", "/") + ".py")
        if not path.exists():
            path = ROOT / name.replace(".", "/") / "__init__.py"
        self.defined: dict[str, ast.stmt] = {}
        self.imported: dict[str, Place] = {}
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            match statement:
                case ast.FunctionDef(name=n) | ast.AsyncFunctionDef(name=n) | ast.ClassDef(name=n):
                    self.defined[n] = statement
                case ast.Assign(targets=[ast.Name(id=n)]) | ast.AnnAssign(target=ast.Name(id=n)):
                    self.defined[n] = statement
                case ast.ImportFrom(module=str(module), names=names):
                    if module.partition(".")[0] in _FOLLOWED and module not in _FRAMES:
                        for alias in names:
                            self.imported[alias.asname or alias.name] = (module, alias.name)


@cache
def _module(name: str) -> _Module:
    return _Module(name)


def _reached(place: Place, seen: set[Place]) -> Iterator[ast.AST]:
    """Yield the nodes of a definition and of all definitions that it refers to."""
    if place in seen:
        return
    seen.add(place)
    module, name = place
    if name in _module(module).imported:
        yield from _reached(_module(module).imported[name], seen)
    elif name in _module(module).defined:
        for node in ast.walk(_module(module).defined[name]):
            yield node
            if isinstance(node, ast.Name):
                yield from _reached((module, node.id), seen)


@cache
def _classes() -> dict[int, list[Place]]:
    """Return the classes of each API by its key."""
    places: dict[int, list[Place]] = {}
    for folder in _FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for name, defined in _module(module).defined.items():
                for statement in defined.body if isinstance(defined, ast.ClassDef) else ():
                    match statement:
                        case ast.AnnAssign(
                            ast.Name("api_key"), value=ast.Attribute(ast.Name("ApiKey"), key)
                        ):
                            places.setdefault(ApiKey[key], []).append((module, name))
    return places


def rights_and_errors(api_key: int) -> tuple[set[tuple[str, str]], set[str]]:
    """Return (operation, resource type) of every authorization check, and all error codes."""
    rights: set[tuple[str, str]] = set()
    errors: set[str] = set()
    seen: set[Place] = set()
    for place in _classes().get(api_key, ()):
        for node in _reached(place, seen):
            match node:
                case ast.Attribute(value=ast.Name("ErrorCode"), attr=name):
                    errors.add(name)
                case ast.Call(args=arguments):
                    for operation, kind in pairwise(arguments[:3]):
                        rights |= {(o, k) for o in _words(operation) for k in _words(kind)}
    return rights, errors


def _words(node: ast.expr) -> list[str]:
    match node:
        case ast.Constant(str(text)) if text.isupper():
            return [text]
        case ast.IfExp(_, body, orelse):
            return _words(body) + _words(orelse)
    return []
