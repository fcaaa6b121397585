"""Project-wide rules, checked on every file."""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib.metadata
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[3]
GENERATED = ROOT / "envelope" / "_pb"
# Folders with a leading dot, except SOURCE_DOT_FOLDERS, are caches and data.
GENERATED_FOLDERS = {"build", "dist", "__pycache__", "spark-warehouse"}
SOURCE_DOT_FOLDERS = {".ci", ".github"}
LINES_OF_A_FUNCTION_MAX = 60
TOP_LEVEL_NAMES = (
    *("cluster_model", "event_log", "metrics", "envelope", "zookeeper_client", "data_plane"),
    *("controller", "broker_proxy", "node", "judge", "chaos"),
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


def files(folder: Path = ROOT) -> Iterator[Path]:
    """Yield all source files."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            kept = not path.name.startswith(".") or path.name in SOURCE_DOT_FOLDERS
            if kept and path.name not in GENERATED_FOLDERS and path != GENERATED:
                yield from files(path)
        elif path.is_file() and (folder != ROOT or path.name != ".git"):
            yield path


def modules() -> list[Path]:
    found = [path for path in files() if path.suffix == ".py"]
    assert len(found) > 100, "the search for modules is broken"
    return found


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_file_contains_a_conflict_of_a_merge() -> None:
    marks = (b"<" * 7 + b" ", b">" * 7 + b" ")
    found = [
        p for p in files() if any(line.startswith(marks) for line in p.read_bytes().split(b"\n"))
    ]
    assert found == []


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
    assert all(each.endswith(".proto") for each in held)


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
