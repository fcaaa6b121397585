"""Project-wide rules, checked on every file."""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib.metadata
import io
import re
import subprocess
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import grimp

from tools.first_hour import PAGES, blocks

ROOT = Path(__file__).parents[3]
GENERATED = ROOT / "envelope" / "_pb"
# Folders with a leading dot, except SOURCE_DOT_FOLDERS, are caches and data.
GENERATED_FOLDERS = {"build", "dist", "__pycache__", "spark-warehouse"}
SOURCE_DOT_FOLDERS = {".ci", ".github"}
LINES_OF_A_FUNCTION_MAX = 60
TOP_LEVEL_NAMES = (
    *("cluster_model", "event_log", "metrics", "envelope", "zookeeper_client", "data_plane"),
    *("controller", "broker_proxy", "node", "judge", "chaos", "rehearse"),
    *("demo", "pipeline"),
    *("bench", "deploy", "tools", "tests"),
)
# Each name is in two parts, so that this file passes its own check.
REGISTRY_HOSTS = re.compile(
    "|".join(
        re.escape(name + end)
        for name, end in (
            ("pypi", ".org"),
            ("python", "hosted.org"),
            ("npmjs", ".org"),
            ("npmjs", ".com"),
            ("maven", ".org"),
            ("repo.maven", ".apache.org"),
            ("docker", ".io/"),  # with the slash, the name of a Debian package is allowed
            ("docker", ".com/"),  # with the slash, our docker.compose is allowed
            ("ghcr", ".io"),
            ("gcr", ".io"),
            ("quay", ".io"),
            ("crates", ".io"),
            ("proxy.golang", ".org"),
        )
    )
)


# The files that a user creates who follows the pages, such as first_client.py.
CREATED_BY_PAGES: Final = frozenset(
    ROOT / block.file
    for page in PAGES
    for block in blocks((ROOT / page).read_text(encoding="utf-8"))
    if block.file is not None
)


def files(folder: Path = ROOT) -> Iterator[Path]:
    """Yield all source files."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            kept = not path.name.startswith(".") or path.name in SOURCE_DOT_FOLDERS
            if kept and path.name not in GENERATED_FOLDERS and path != GENERATED:
                yield from files(path)
        elif path.is_file() and path not in (ROOT / ".git", *CREATED_BY_PAGES):
            yield path


def modules() -> list[Path]:
    paths = [path for path in files() if path.suffix == ".py"]
    assert len(paths) > 100, "the search for modules is broken"
    return paths


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_a_checkout_in_which_readme_was_followed_is_tidy() -> None:
    """`first_client.py` has no docstring; git, and so ruff, ignores it, and .bridgehead."""
    created = ["first_client.py", "test_failover.py"]
    assert {ROOT / file for file in created} <= CREATED_BY_PAGES
    ignored = subprocess.run(
        ["git", "check-ignore", ".bridgehead/cluster.json", *created],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert set(ignored.stdout.split()) == {".bridgehead/cluster.json", *created}


def test_no_file_contains_a_conflict_of_a_merge() -> None:
    marks = (b"<" * 7 + b" ", b">" * 7 + b" ")
    conflicts = [
        p for p in files() if any(line.startswith(marks) for line in p.read_bytes().split(b"\n"))
    ]
    assert conflicts == []


def test_every_module_has_a_docstring() -> None:
    silent = [name(p) for p in modules() if not ast.get_docstring(tree(p))]
    assert silent == []


def test_functions_are_short() -> None:
    """The lines of the docstring count. The lines of decorators do not."""
    long = {
        f"{name(path)}:{node.lineno} {node.name}": size
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (size := (node.end_lineno or 0) - node.lineno + 1) > LINES_OF_A_FUNCTION_MAX
    }
    assert long == {}


def test_imports_have_no_cycle() -> None:
    """Imports for type checking count."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    graph = grimp.build_graph(*project["tool"]["importlinter"]["root_packages"], cache_dir=None)
    imported = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imported) > 100, "the search for imports is broken"
    graphlib.TopologicalSorter(imported).prepare()  # Raises CycleError, which names the modules.


def test_proto_has_only_proto_files() -> None:
    """`proto` is the import name of a well-known package, so our folder must not be a package."""
    held = [path.name for path in files(ROOT / "proto")]
    assert held != []
    assert all(file.endswith(".proto") for file in held)


def test_no_installed_package_has_our_top_level_names() -> None:
    """Otherwise one of the two packages would hide the other."""
    owners = importlib.metadata.packages_distributions()
    assert "pytest" in owners, "the search for owners is broken"
    assert {n: owners[n] for n in TOP_LEVEL_NAMES if n in owners} == {}


def test_no_file_names_a_package_registry() -> None:
    """Users choose their own mirror."""
    named = []
    for path in files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # Binary, such as a recording.
        named += [f"{name(path)}: {host}" for host in REGISTRY_HOSTS.findall(text)]
    assert named == []


def test_type_ignores_have_an_error_code() -> None:
    """Without a code, the comment would hide other errors too."""
    without_code = re.compile(r"type:\s*ignore(?!\[[a-z-]+)")
    bare = []
    for path in modules():
        if not without_code.search(path.read_text(encoding="utf-8")):
            continue  # To split all files into tokens takes seconds.
        with path.open("rb") as file:
            bare += [
                f"{name(path)}:{token.start[0]}"
                for token in tokenize.tokenize(file.readline)
                if token.type == tokenize.COMMENT and without_code.search(token.string)
            ]
    assert bare == []


# The left words mean the same as the right ones; docs/glossary.md has the choice.
OUTDATED_PARTS = {
    **dict.fromkeys(("answer", "answers"), "response or reply"),
    **dict.fromkeys(("answered", "answering", "unanswered"), "responded or replied"),
    **dict.fromkeys(("refuse", "refuses", "refused", "refusing"), "reject"),
    **dict.fromkeys(("refusal", "refusals"), "rejection"),
    **dict.fromkeys(("hole", "holes"), "gap"),
    **dict.fromkeys(("freeze", "freezes", "freezing"), "pause"),
}
OUTDATED_NAMES = {
    "way": "route",
    "ways": "routes",
    "each": "the singular of the collection",
    **dict.fromkeys(("found", "given", "known", "own"), "the noun of what it is"),
}
ALLOWED_NAMES = {
    "ConnectionRefusedError": "Python's name",
    "freeze": "the command `bridgehead controller freeze`",
    "SEEK_HOLE": "the name in POSIX",
    "freeze_controller": "the method behind this command, which users call",
    "_controller_freeze": "the command's handler; its name is the command's on the control socket",
}


def parts(identifier: str) -> list[str]:
    """Return the words of a name such as `forward_sent` or `ForwardSent`."""
    return [p.lower() for p in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)]


def test_names_have_the_words_of_the_glossary() -> None:
    outdated = {
        f"{name(path)}:{token.start[0]} {token.string}": [*wrong, OUTDATED_NAMES.get(token.string)]
        for path in modules()
        for token in tokenize.tokenize(io.BytesIO(path.read_bytes()).readline)
        if token.type == tokenize.NAME and token.string not in ALLOWED_NAMES
        if token.string != "given" or b"hypothesis" not in path.read_bytes()  # its decorator
        if (wrong := [OUTDATED_PARTS[p] for p in parts(token.string) if p in OUTDATED_PARTS])
        or token.string in OUTDATED_NAMES
    }
    assert outdated == {}


# These bases document no method.
PLAIN_BASES = {"object", "Generic", "NamedTuple", "Enum", "IntEnum", "ABC", "Protocol", "BaseModel"}


def test_public_methods_have_a_docstring() -> None:
    """A method that a base class, a Protocol or a library documents needs none of its own.

    The docstring of a Protocol may explain its methods.
    """
    classes = [
        (path, node, {ast.unparse(b).split("[")[0].rpartition(".")[2] for b in node.bases})
        for path in modules()
        if name(path).partition("/")[0] not in {"tests"}
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
    ]
    defined = {node.name for _, node, _ in classes}
    inherited = {base for _, _, bases in classes for base in bases}
    documented = {
        method.name
        for _, node, bases in classes
        if "Protocol" in bases or node.name in inherited
        for method in methods(node)
        if "Protocol" in bases or ast.get_docstring(method)
    }
    silent = [
        f"{name(path)}:{method.lineno} {node.name}.{method.name}"
        for path, node, bases in classes
        if not node.name.startswith("_") and "Protocol" not in bases
        if bases <= defined | PLAIN_BASES  # a library documents the methods of its own classes
        for method in methods(node)
        if not ast.get_docstring(method) and method.name not in documented
    ]
    assert silent == []


def methods(node: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the public methods of a class; the setter of a property is none."""
    return [
        member
        for member in node.body
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
        and not member.name.startswith("_")
        and not any(ast.unparse(d).endswith((".setter", "overload")) for d in member.decorator_list)
    ]
