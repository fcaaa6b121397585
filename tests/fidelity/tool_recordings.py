"""Sessions of Kafka's command-line tools: commands and their output.

A session is a text file in `tests/recordings/tools`:

    < moves.json {"version": 1}     a file that a later command reads
    $ topics --list                 a command, without `kafka-` and without the server
    orders                          a line on standard output
    ! a message                     a line on standard error
    = 1                             the exit status, if it is not 0

`mask` replaces values that differ between runs. `without_java` removes lines that only a Java
program prints. Kafka's tools print some lines in the order of a hash table;
`sorted_blocks` sorts these lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

FOLDER: Final = Path("tests/recordings/tools")
# A command may need this part of an earlier output: the HMAC of the first token.
HMAC: Final = re.compile(r"[A-Za-z0-9+/]{86}==")
_MASKS: Final = (
    (re.compile(r"127\.0\.0\.1:\d{4,5}"), "HOST:PORT"),
    (HMAC, "HMAC" + 84 * "."),
    (re.compile(r"(?<=TopicId: )[\w-]{22}"), "TOPIC-ID"),
    (re.compile(r"(?<=Cluster ID: )[\w-]{22}"), "CLUSTER-ID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d"), "YYYY-MM-DDTHH:MM"),
    (re.compile(r'(?<="logDir":")[^"]*'), "FOLDER"),
    (re.compile(r"(?<=tokenId : )[\w-]{22}"), "TOKEN-ID" + 14 * "."),
    (re.compile(r"^[\w-]{22}(?= +HMAC)"), "TOKEN-ID" + 14 * "."),
)
_STACK: Final = re.compile(
    r"\s+at .*|Caused by: .*|\s*\.\.\. \d+ more|\s+Suppressed: .*|SLF4J.*|log4j:.*"
)
_EXCEPTION: Final = re.compile(
    r"(Exception in thread \S+ )?(?:java|joptsimple|org|kafka|scala|net|com)\.[\w.$]+"
    r"(?:Exception|Error)(?:: (?P<message>.*))?"
)
# The last alternative matches the line with a broker's address; the lines of its APIs follow.
_UNORDERED: Final = re.compile(
    r"(Adding|Current) ACLs for resource .*|TOKEN-ID.*|HOST:PORT.* -> .*"
)
_OPTIONS_TABLE: Final = re.compile(r"Option( \(\* = required\))? +Description.*")


@dataclass(slots=True)
class Output:
    """The lines that a command printed, and its exit status."""

    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    status: int = 0

    def lines(self) -> list[str]:
        """Return the output in the form of a session."""
        status = [f"= {self.status}"] if self.status else []
        return [*self.stdout, *(f"! {line}" for line in self.stderr), *status]


@dataclass(slots=True)
class Step:
    """A command, the files that it needs, and its output."""

    command: str
    files: dict[str, str] = field(default_factory=dict)
    output: Output = field(default_factory=Output)


def load_session(path: Path) -> list[Step]:
    """Return the steps of a session."""
    steps: list[Step] = []
    files: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        match line[:2]:
            case "< ":
                name, _, text = line[2:].partition(" ")
                files[name] = text
            case "$ ":
                steps.append(Step(line[2:], files))
                files = {}
            case "! ":
                steps[-1].output.stderr.append(line[2:])
            case "= ":
                steps[-1].output.status = int(line[2:])
            case _:
                steps[-1].output.stdout.append(line)
    return steps


def save_session(path: Path, steps: Iterable[Step]) -> None:
    """Write the steps of a session."""
    lines: list[str] = []
    for step in steps:
        lines += [f"< {name} {text}" for name, text in step.files.items()]
        lines += [f"$ {step.command}", *step.output.lines()]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def mask(text: str, names: Mapping[str, str]) -> list[str]:
    """Return the lines with masked values. `names`: further texts and their masks."""
    lines = []
    for line in text.splitlines():
        for value, name in names.items():
            line = line.replace(value, name)
        for pattern, name in _MASKS:
            line = pattern.sub(name, line)
        lines.append(line.rstrip())
    while lines and not lines[-1]:
        del lines[-1]
    return lines


def without_java(lines: list[str]) -> list[str]:
    """Return the lines without stack traces, log lines and the table of the options.

    The first line of a stack trace is kept unless an earlier line has the exception's message.
    """
    kept: list[str] = []
    for line in lines:
        if _OPTIONS_TABLE.fullmatch(line):
            break
        match = _EXCEPTION.fullmatch(line)
        message = (match and match["message"]) or line
        if match and any(name.endswith(message) or line.endswith(name) for name in kept if name):
            continue
        if not _STACK.fullmatch(line):
            kept.append(line)
    while kept and not kept[-1]:
        del kept[-1]
    return kept


def sorted_blocks(lines: list[str]) -> list[str]:
    """Return the lines with ACLs, resources, tokens and brokers sorted."""
    blocks: list[list[str]] = [[]]
    for line in lines:
        if _UNORDERED.fullmatch(line):
            blocks.append([])
        blocks[-1].append(line)
    first, *rest = blocks
    sorted_rest = sorted(
        [head, *sorted(filter(None, map(str.strip, tail)))] for head, *tail in rest
    )
    return [*first, *(line for block in sorted_rest for line in block)]
