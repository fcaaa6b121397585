"""`make first-hour`: follows the pages in PAGES literally, on a clean clone, twice in a row.

The pages are README, the guides, policies and upgrade. Their code blocks are used:

- a block `sh` is run by bash, in the clone; variables live until the end of the page;
- a block of another language whose first line is a comment with a file name becomes that file;
- the commands in a file of GitHub Actions or GitLab CI are run too, in a new folder that has only
  the example test;
- blocks without a language are not run.

A section about Java, Go or Node is skipped with a line NOT TESTED if the tools of that language are
missing, or if the section's first block `sh`, which fetches packages, fails. No process may be left
at the end of a page. `--reuse-venv` uses this checkout's packages instead of installing them again.
A CI recipe installs the clone's committed state.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
import yaml

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = (
    "README.md",
    "docs/policies.md",
    "docs/upgrade.md",
    *sorted(f"docs/guides/{p.name}" for p in (ROOT / "docs/guides").iterdir()),
)
TOOLS: Final = {"Java": ("mvn", "java"), "Go": ("go",), "Node": ("npm", "node")}
_BLOCK: Final = re.compile(
    r"^(?:## (?P<section>[^\n]*)|```(?P<language>\w*)\n(?P<text>.*?)^```)$", re.M | re.S
)
_FILE: Final = re.compile(r"(?:#|//|<!--) ([\w./-]+\.\w+)(?:;.*)?(?: -->)?\n")
_COMMAND_TIMEOUT_S: Final = 600
_GONE_WITHIN_S: Final = 10


@dataclass(frozen=True)
class Block:
    """A code block of a page, and its section."""

    section: str
    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The file name in the block's first line; None if the block is not a file."""
        match = _FILE.match(self.text)
        return match[1] if match is not None and self.language != "sh" else None


class PageFailedError(Exception):
    """A page cannot be followed as it is printed."""


def blocks(page: str) -> Iterator[Block]:
    """Yield the code blocks of a page's text, in order."""
    section = ""
    for match in _BLOCK.finditer(page):
        if match["section"] is not None:
            section = match["section"]
        else:
            yield Block(section, match["language"], match["text"])


class Follower:
    """Runs the commands in the pages of one clone."""

    def __init__(self, clone: Path, skipped: Sequence[str] = ()) -> None:
        self.clone = clone
        self._skipped = skipped
        self.untested: set[str] = set()
        self._recipes: list[list[str]] = []  # of this page; recipes with equal commands run once

    def follow(self, page: str) -> None:
        """Run a page's blocks in order.

        Raises:
            PageFailedError: a command fails, or a process is left.
        """
        state = self.clone.parent / "state"
        state.unlink(missing_ok=True)
        self._recipes.clear()
        skipped, started = set(self._skipped), set()
        for block in blocks((self.clone / page).read_text(encoding="utf-8")):
            missing = [t for t in TOOLS.get(block.section, ()) if shutil.which(t) is None]
            if missing and block.section not in skipped:
                self._skip(skipped, page, block, f"{', '.join(missing)} missing")
            if block.section in skipped:
                continue
            if block.file is not None:
                self._write(block)
            elif block.language == "sh":
                first = block.section in TOOLS and block.section not in started
                started.add(block.section)
                if (code := self._run(block.text, state)) and first:
                    self._skip(skipped, page, block, "its packages cannot be fetched")
                elif code:
                    raise PageFailedError(f"{page}: exit code {code} of\n{block.text}")
        # The page's last command may have returned just before a process that it stopped is gone.
        _, left = psutil.wait_procs(processes_of(self.clone), timeout=_GONE_WITHIN_S)
        if left:
            lines = [" ".join(process.info["cmdline"]) for process in left]
            raise PageFailedError(f"{page} leaves processes: {lines}")

    def _skip(self, skipped: set[str], page: str, block: Block, reason: str) -> None:
        skipped.add(block.section)
        self.untested.add(f"NOT TESTED: {block.section} of {page}: {reason}.")

    def _write(self, block: Block) -> None:
        assert block.file is not None
        path = self.clone / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        commands = recipe(block)
        if commands and commands not in self._recipes:
            self._recipes.append(commands)
            self._run_recipe(commands)

    def _run_recipe(self, commands: list[str]) -> None:
        with tempfile.TemporaryDirectory(dir=self.clone.parent) as folder:
            workspace = Path(folder)
            shutil.copytree(self.clone / "tests", workspace / "tests", ignore=_all_but_the_example)
            for command in commands:
                repository = self.clone.as_uri()
                environment = {**clean_environment(), "BRIDGEHEAD_REPOSITORY": repository}
                if code := shell(command, workspace, environment):
                    raise PageFailedError(f"exit code {code} of the recipe's command\n{command}")

    def _run(self, text: str, state: Path) -> int:
        """Run a block; return its exit code. `state` carries variables to the next block."""
        load = f"[ -f {state} ] && . {state}; set -eu"
        return shell(f"{load}\n{text}\nexport -p > {state}\n", self.clone, clean_environment())


def recipe(block: Block) -> list[str]:
    """Return the commands of a file of GitHub Actions or GitLab CI; none for any other file."""
    if block.language != "yaml":
        return []
    document: dict[str, Any] = yaml.safe_load(block.text)
    jobs = document.get("jobs", document).values()
    steps = [step for job in jobs if isinstance(job, dict) for step in job.get("steps", ())]
    scripts = [line for job in jobs if isinstance(job, dict) for line in job.get("script", ())]
    return [step["run"] for step in steps if "run" in step] + scripts


def _all_but_the_example(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name != "test_failover.py"]


def clean_environment() -> dict[str, str]:
    """Return this process's environment without the variables that belong to this checkout."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BRIDGEHEAD_", "PYTHON", "VIRTUAL_ENV", "MAKE", "MFLAGS", "PYTEST"))
    }
    path = [part for part in kept["PATH"].split(os.pathsep) if ".venv" not in part]
    return {**kept, "PATH": os.pathsep.join(path), "COLUMNS": "80"}


def shell(text: str, folder: Path, environment: dict[str, str]) -> int:
    """Run a script and show its output; return its exit code."""
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        timeout=_COMMAND_TIMEOUT_S,
        check=False,
    )
    return done.returncode


def processes_of(folder: Path) -> list[psutil.Process]:
    """Return the live processes that run in the folder or name a path in it."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "cwd"])
        if str(folder) in " ".join((*(process.info["cmdline"] or ()), process.info["cwd"] or ""))
    ]


def link_venv(source: Path, target: Path) -> None:
    """Give a clone the installed packages of another checkout, as hard links."""
    if (target / ".venv").exists():
        return
    shutil.copytree(source / ".venv", target / ".venv", symlinks=True, copy_function=_link)
    launcher = target / ".venv" / "bin" / "bridgehead"
    text = launcher.read_text(encoding="utf-8").replace(str(source), str(target))
    launcher.unlink()
    launcher.write_text(text, encoding="utf-8")
    launcher.chmod(0o755)
    for package in (target / ".venv").glob("lib/python*/site-packages/bridgehead"):
        package.unlink()
        package.symlink_to(target / "bridgehead", target_is_directory=True)
    (target / ".venv" / ".setup-done").unlink(missing_ok=True)
    (target / ".venv" / ".setup-done").touch()


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system
        shutil.copy2(source, target, follow_symlinks=False)


def main() -> int:
    """Clone, install, follow every page; return 0 if all can be followed."""
    parser = argparse.ArgumentParser(prog="first-hour", description=__doc__)
    parser.add_argument("--reuse-venv", action="store_true", help="do not install the packages")
    parser.add_argument("--python-only", action="store_true", help="skip the other languages")
    rounds = "how many times to follow the pages (default: 2)"
    parser.add_argument("--rounds", type=int, default=2, help=rounds)
    pages = "default: README, policies, upgrade and the guides"
    parser.add_argument("pages", nargs="*", default=PAGES, help=pages)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="first-hour-") as folder:
        clone = Path(folder) / "bridgehead"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        if options.reuse_venv:
            link_venv(ROOT, clone)
        follower = Follower(clone, tuple(TOOLS) if options.python_only else ())
        try:
            if shell("make setup", clone, clean_environment()):
                raise PageFailedError("make setup failed")
            for number in range(1, options.rounds + 1):
                for page in options.pages:
                    began = time.monotonic()
                    print(f"== {page}, round {number}", flush=True)
                    follower.follow(page)
                    print(f"== {page}: {time.monotonic() - began:.0f} s", flush=True)
        except PageFailedError as failed:
            print(f"FAILED: {failed}", file=sys.stderr)
            for pid_file in clone.rglob("supervisor.pid"):
                down = f".venv/bin/bridgehead down --data-dir {pid_file.parent}"
                shell(down, clone, clean_environment())
            for process in processes_of(clone):  # what the page started in the background
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.terminate()
            return 1
    for line in sorted(follower.untested):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
