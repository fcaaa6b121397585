"""The house rules that a reader relies on, checked over every file of the project."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "envelope" / "_pb"
# What is made here and not written here; other folders that begin with a dot are caches and data.
MADE = {"build", "dist", "__pycache__", "spark-warehouse"}
WRITTEN_DOT_FOLDERS = {".ci", ".github"}
LINES_OF_A_FILE_MAX = 400
LINES_OF_A_FUNCTION_MAX = 60
TOP_LEVEL_NAMES = (
    *("cluster_model", "event_log", "metrics", "envelope", "zookeeper_client", "controller"),
    *("broker_proxy", "node", "chaos", "pipeline", "bench", "docs", "tests"),
)
# In two halves each, or this file would break its own rule.
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
            ("docker", ".io/"),  # without the slash it is the name of a Debian package
            ("docker", ".com/"),  # and docker.compose is a name of ours
            ("ghcr", ".io"),
            ("gcr", ".io"),
            ("quay", ".io"),
            ("crates", ".io"),
            ("proxy.golang", ".org"),
        )
    )
)


def files(folder: Path = ROOT) -> Iterator[Path]:
    """Everything that somebody wrote, generated stubs excepted."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            kept = not path.name.startswith(".") or path.name in WRITTEN_DOT_FOLDERS
            if kept and path.name not in MADE and path != GENERATED:
                yield from files(path)
        elif path.is_file() and (folder != ROOT or path.name != ".git"):
            yield path


def modules() -> list[Path]:
    found = [path for path in files() if path.suffix == ".py"]
    assert len(found) > 100, "the search for modules is broken"
    return found


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_module_begins_with_a_docstring() -> None:
    """A reader learns from its first sentence whether to read on."""
    silent = [name(p) for p in modules() if not ast.get_docstring(ast.parse(p.read_bytes()))]
    assert silent == []


def test_no_file_is_longer_than_one_can_hold_in_mind() -> None:
    """A longer one has two purposes."""
    lengths = {name(path): len(path.read_bytes().splitlines()) for path in modules()}
    assert {n: size for n, size in lengths.items() if size > LINES_OF_A_FILE_MAX} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    """Its docstring counted, its decorators not."""
    long = {
        f"{name(path)}:{node.lineno} {node.name}": size
        for path in modules()
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (size := (node.end_lineno or 0) - node.lineno + 1) > LINES_OF_A_FUNCTION_MAX
    }
    assert long == {}


def test_proto_holds_no_python() -> None:
    """`proto` is the import name of a well-known package: ours must give way to it."""
    held = [path.name for path in files(ROOT / "proto")]
    assert held != []
    assert all(each.endswith(".proto") for each in held)


def test_nobody_else_owns_our_top_level_names() -> None:
    """The application tree would hide that package, or be hidden by it."""
    owners = importlib.metadata.packages_distributions()
    assert "pytest" in owners, "the search for owners is broken"
    assert {n: owners[n] for n in TOP_LEVEL_NAMES if n in owners} == {}


def test_no_file_names_the_host_of_a_registry() -> None:
    """Whose mirror is used is the affair of whoever installs."""
    named = []
    for path in files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # Recordings and the like are compressed.
        named += [f"{name(path)}: {host}" for host in REGISTRY_HOSTS.findall(text)]
    assert named == []


def test_a_type_error_is_ignored_by_its_code_or_not_at_all() -> None:
    """Without a code the comment also hides the next mistake."""
    bare = []
    for path in modules():
        with path.open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                if token.type == tokenize.COMMENT and re.search(
                    r"type:\s*ignore(?!\[[a-z-]+)", token.string
                ):
                    bare.append(f"{name(path)}:{token.start[0]}")
    assert bare == []
