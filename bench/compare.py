"""`python -m bench.compare BASE [--only NAME] [--rounds N]`: two commits in turns, as ratios.

Each round runs the benchmarks with the code of BASE, then with the code that is checked out here,
on the same machine and with the same packages. Lines are compared if they differ only in numbers;
if several lines of a commit do, the first is compared with the first, and so on.
A number in which the two commits differ by more than half is marked with `!`.

Exit code 0 if all benchmarks ran, 1 if one failed or no line could be compared.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from bench.report import progress

ROOT: Final = Path(__file__).parents[1]
# A number, with its sign, that is not a part of a word or of a version such as 3.9.1.
_NUMBER: Final = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?(?![\w]*\.\d)")
_DIFFERENT: Final = 1.5


class Line(NamedTuple):
    """A line of a benchmark's output without its numbers."""

    text: str
    earlier: int  # lines above it with the same text, for example with 32 instead of 256 clients


# By line: for each of its numbers, the value in each round.
Numbers = dict[Line, list[list[float]]]


def read_lines(output: str) -> dict[Line, list[float]]:
    """Return the numbers of each line of a benchmark's output."""
    lines: dict[Line, list[float]] = {}
    texts: Counter[str] = Counter()
    for line in output.splitlines():
        if line.startswith("  "):  # The other lines are names of benchmarks and their times.
            text = _NUMBER.sub("#", line.strip())
            numbers = _NUMBER.findall(line)
            lines[Line(text, texts[text])] = [float(number.replace(",", "")) for number in numbers]
            texts[text] += 1
    return lines


def compared(base: Numbers, ours: Numbers) -> Iterator[str]:
    """Yield each line that both commits have, with `base -> ours (ours / base)` for its numbers.

    A number that is the same in every round is a setting of the benchmark and stays as it is.
    """
    for line, of_base in base.items():
        if line in ours and of_base:
            pairs = iter(zip(of_base, ours[line], strict=True))
            yield re.sub("#", lambda _, pairs=pairs: _pair(*next(pairs)), line.text)  # type: ignore[misc]


def _pair(base: Sequence[float], ours: Sequence[float]) -> str:
    before, now = statistics.median(base), statistics.median(ours)
    if len({*base, *ours}) == 1:
        return f"{now:g}"
    if not before or not now:
        return f"[{before:g} -> {now:g}]"
    ratio = now / before
    mark = "!" if max(ratio, 1 / ratio) > _DIFFERENT else ""
    return f"[{before:g} -> {now:g} ({ratio:.2f}{mark})]"


@contextmanager
def _checked_out(commit: str) -> Iterator[Path]:
    """Check a commit out into a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="bridgehead-base-") as name:
        folder = Path(name) / "base"
        git = ("git", "-C", str(ROOT), "worktree")
        subprocess.run([*git, "add", "--quiet", "--detach", str(folder), commit], check=True)
        try:
            for code in (folder, ROOT):  # Otherwise imports would take longer in one of them.
                compiled = (sys.executable, "-m", "compileall", "-q", "-x", r"/\.venv/", str(code))
                subprocess.run(compiled, stdout=subprocess.DEVNULL, check=False)
            yield folder
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def _run(folder: Path, arguments: Sequence[str]) -> Mapping[Line, list[float]]:
    done = subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return read_lines(done.stdout)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(prog="bench.compare", description=__doc__)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--only", action="append", default=[], help="one benchmark; repeatable")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--full", action="store_true", help="as many rounds and as much data as `bench`"
    )
    options = parser.parse_args(arguments)
    chosen = [part for name in options.only for part in ("--only", name)]
    if not options.full:
        chosen.append("--quick")
    numbers: tuple[Numbers, Numbers] = ({}, {})
    with _checked_out(options.base) as base:
        for number in range(options.rounds):
            for folder, kept in zip((base, ROOT), numbers, strict=True):
                progress(f"round {number + 1}: {options.base if folder is base else 'here'}")
                for line, values in _run(folder, chosen).items():
                    rounds = kept.setdefault(line, [[] for _ in values])
                    for value, of_number in zip(values, rounds, strict=True):
                        of_number.append(value)
    lines = list(compared(*numbers))
    print(f"{options.base} -> here, medians of {options.rounds} rounds (ratio)", *lines, sep="\n  ")
    return 0 if lines else 1


if __name__ == "__main__":
    sys.exit(main())
